//! The work that the desk is for, done by somebody who only knows what the pages say.

mod colleagues;
mod many;
mod morning;
mod person;
