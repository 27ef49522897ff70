//! Laws across modules, as one fast binary.

mod graph;
