//! The middle of tidemill: from files to entries, as values.

pub mod chunk;
pub mod clean;
pub mod code;
pub mod data;
pub mod rules;
