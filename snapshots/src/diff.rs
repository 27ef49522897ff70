//! The difference between two versions, of one lineage or of two.
//!
//! In: two versions. Out: the entries inserted and retracted from the first to the second. **Invariant:** applying the difference
//! to the first version's entries gives the second's. It compares the bitmaps and not the deltas between, so the cost does not
//! depend on the distance of the versions.

use crate::archive::Archive;
use crate::bitmaps::Delta;
use crate::error::ArchiveError;
use crate::identity::VersionId;

impl Archive {
    /// Returns the entries inserted and retracted from version `from` to version `to`.
    ///
    /// # Errors
    /// Fails if there is no such version, or if a delta does not fit its base.
    pub fn diff(&self, from: VersionId, to: VersionId) -> Result<Delta, ArchiveError> {
        let (from, to) = (self.bitmaps(from)?, self.bitmaps(to)?);
        Ok(Delta { inserted: &to.entries - &from.entries, retracted: &from.entries - &to.entries })
    }
}
