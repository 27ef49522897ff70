//! The archive of tidemill: which entries were alive at which commit.
