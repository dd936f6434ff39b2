//! The desk: pages for support staff, rendered on the server and complete without script.
//!
//! A page is a struct whose fields are shaped for display, beside a template that only places
//! them. Whoever fills a page decides; the template does not compute.

pub mod assets;
pub mod known;
pub mod labels;
pub mod listing;
pub mod page;
pub mod pages;
pub mod timeline;
pub mod view;

#[cfg(test)]
mod gallery;
