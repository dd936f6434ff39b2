//! The work that the desk is for, done by somebody who only knows what the pages say.

mod morning;
mod person;
