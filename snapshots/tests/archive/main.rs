//! The archive's promises, one file each.
//!
//! **Invariant:** every test has a folder of its own and fixed seeds, and compares with [`model`], which keeps every
//! version as plain sets.

mod budget;
mod format;
mod histories;
mod lineage;
mod model;
mod moves;
mod refusals;
mod torn;
mod verify;
