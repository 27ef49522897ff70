//! tidemill keeps a hybrid index in step with every commit.

pub mod watch;
