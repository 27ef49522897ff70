//! The archive of tidemill: which entries were alive at which commit.

mod commit;

pub use commit::CommitId;
