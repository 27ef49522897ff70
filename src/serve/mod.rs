//! The doors: everything that leaves the program as JSON.
//!
//! In: values of the modules before. Out: the shapes that scripts rely on.

pub mod wire;
