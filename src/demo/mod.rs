//! What `dlo demo` needs beside the product itself. Nothing else in the product may use it; tests
//! may.

pub mod destination;
