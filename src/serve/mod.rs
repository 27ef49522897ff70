//! The JSON output of the program.
//!
//! In: values of earlier modules. Out: the shapes that scripts rely on.

pub mod wire;
