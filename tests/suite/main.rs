//! Laws across modules, as one fast binary.
//!
//! Start with [`locality`], which is the promise. `TIDEMILL_HEAVY=1` runs many more random histories.

#![expect(clippy::unwrap_used, reason = "a test ends where something does not hold")]

mod answers;
mod archive_tools;
mod commands;
mod crashes;
mod directory;
mod disk;
mod encodings;
mod evaluated;
mod explained;
mod filters;
mod graph;
mod guarantees;
mod histories;
mod hostile;
mod identity;
mod interrupts;
mod layering;
mod live;
mod locality;
mod owed;
mod readers;
mod rebuilt;
mod receipts;
mod refusals;
mod remotes;
mod resources;
mod retention;
mod revisions;
mod shown;
mod slices;
mod sources;
mod stored;
mod support;
mod surroundings;
mod traces;
mod troubles;
mod unanswered;
mod unseen;
mod whole;
mod workers;
