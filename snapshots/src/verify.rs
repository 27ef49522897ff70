//! Checks whether all records can be computed again from the entries.
//!
//! In: the archive, and for each ordinal the entry's identity and token counts. Out: all contradictions. **Invariant:** if no
//! damage is found, the digest, counts and tokens of every kept version are those of its entries, and every checkpoint equals the
//! bitmaps replayed from the log.
//!
//! One pass in the order of the log: each version is checked against the records of its base. So the total cost is the sum of the
//! deltas, and damage is reported at the version where it begins and not at later ones.

use crate::archive::Archive;
use crate::bitmaps::Changes;
use crate::digest::Digest;
use crate::history::{History, Staging};
use crate::identity::VersionId;
use crate::lineage::{Recent, rebuild};
use crate::log::LogFile;
use crate::ordinal::Ordinal;
use crate::tokens::Tokens;
use crate::version::Version;

/// One contradiction.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The log on disk differs from what was read of it.
    #[error("the version log: {reason}")]
    Log {
        /// The error, with all causes.
        reason: String,
    },
    /// A delta inserts live ordinals or retracts dead ones; versions based on it are not checked.
    #[error("version {version}: its changes do not fit its base")]
    Inexact {
        /// The first affected version.
        version: VersionId,
    },
    /// An entry that a version moves is missing from the store.
    #[error("version {version}: entry {ordinal} is not in the store")]
    UnknownEntry {
        /// The first version that moves it.
        version: VersionId,
        /// The entry.
        ordinal: Ordinal,
    },
    /// The digest is not that of the entries.
    #[error("version {version}: the digest is recorded as {recorded}, its entries give {computed}")]
    Digest {
        /// The first affected version.
        version: VersionId,
        /// The recorded value.
        recorded: Digest,
        /// The value computed from the entries.
        computed: Digest,
    },
    /// A token count is not that of the entries.
    #[error("version {version}: the tokens are recorded as {recorded:?}, its entries give {computed:?}")]
    Tokens {
        /// The first affected version.
        version: VersionId,
        /// The recorded value.
        recorded: Tokens,
        /// The value computed from the entries.
        computed: Tokens,
    },
    /// A checkpoint contradicts the log; readers skip it, and it may be deleted.
    #[error("the checkpoint of version {version}: {reason}")]
    Checkpoint {
        /// Of which version.
        version: VersionId,
        /// The error.
        reason: String,
    },
}

/// Looks an entry up: its identity.
pub type EntryOf<'a> = &'a dyn Fn(Ordinal) -> Option<[u8; 16]>;
/// Looks an entry up: its tokens by field.
pub type TokensOf<'a> = &'a dyn Fn(Ordinal) -> Option<Tokens<u32>>;

impl Archive {
    /// Computes all recorded values again, and returns the contradictions. Only the changes of a dropped version are checked,
    /// because its entries may be gone.
    ///
    /// Calls both functions once for every move of an entry.
    #[must_use]
    pub fn verify(&self, entry_of: EntryOf<'_>, tokens_of: TokensOf<'_>) -> Vec<Damage> {
        let mut damage: Vec<Damage> = self.verify_log().into_iter().collect();
        let staging = Staging::new(&self.history);
        let mut recent = Recent::default();
        let mut unsound = vec![false; self.history.versions.len()];
        for version in &self.history.versions {
            if version.base.is_some_and(|base| unsound[base.index()]) {
                unsound[version.id.index()] = true;
                continue;
            }
            let changes = staging.packed(version.id).and_then(|packed| Changes::unpack(packed).ok());
            let disjoint = changes.filter(|Changes { entries, documents }| {
                entries.inserted.is_disjoint(&entries.retracted) && documents.inserted.is_disjoint(&documents.retracted)
            });
            // Checkpoints are not used: they are under test.
            let replayed = rebuild(&staging, version.id, &mut recent, None);
            let (Some(_), Ok(replayed)) = (disjoint, replayed) else {
                unsound[version.id.index()] = true;
                damage.push(Damage::Inexact { version: version.id });
                continue;
            };
            if !self.is_dropped(version.id) {
                match self.changes_since_kept(version.id) {
                    Ok(changes) => damage.extend(self.verify_entries(version, &changes, entry_of, tokens_of)),
                    Err(_) => damage.push(Damage::Inexact { version: version.id }),
                }
            }
            if let Some(chain) = self.history.chain(version.id).filter(|_| self.checkpoints.has(version.id)) {
                let reason = match self.checkpoints.read(version.id, chain) {
                    Ok(kept) if kept == *replayed => continue,
                    Ok(_) => "its bitmaps differ from the log's".to_owned(),
                    Err(why) => why.to_string(),
                };
                damage.push(Damage::Checkpoint { version: version.id, reason });
            }
        }
        let strays = self.checkpoints.versions().filter(|stray| stray.index() >= self.history.versions.len());
        damage.extend(
            strays.map(|version| Damage::Checkpoint { version, reason: "the log has no such version".to_owned() }),
        );
        damage
    }

    /// Reads the log from disk again, up to the last position.
    fn verify_log(&self) -> Option<Damage> {
        let mut history = History::default();
        let reason = match LogFile::open_reader(self.log.path()).and_then(|mut log| log.read_on(&mut history)) {
            Ok(_) if history.versions.starts_with(&self.history.versions) => return None,
            Ok(_) => "groups that were read before are gone".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(Damage::Log { reason })
    }

    /// Checks a version's digest and tokens against those of its nearest kept base, and its changes since.
    fn verify_entries(
        &self,
        version: &Version,
        changes: &Changes,
        entry_of: EntryOf<'_>,
        tokens_of: TokensOf<'_>,
    ) -> Vec<Damage> {
        let base = self.kept_base(version.id).and_then(|base| self.version(base));
        let mut digest = base.map_or(Digest::EMPTY, |base| base.digest);
        let mut tokens = base.map_or_else(Tokens::default, |base| base.statistics.live_tokens);
        let mut damage = Vec::new();
        let id = version.id;
        for (bitmap, comes) in [(&changes.entries.inserted, true), (&changes.entries.retracted, false)] {
            for ordinal in bitmap.iter().map(Ordinal::new) {
                let (Some(identity), Some(counts)) = (entry_of(ordinal), tokens_of(ordinal)) else {
                    damage.push(Damage::UnknownEntry { version: id, ordinal });
                    continue;
                };
                if comes {
                    digest.add(&identity);
                    tokens.add(counts);
                } else {
                    digest.remove(&identity);
                    tokens.remove(counts);
                }
            }
        }
        // If an entry is unknown, its digest and tokens are unknown as well.
        if damage.is_empty() {
            if digest != version.digest {
                damage.push(Damage::Digest { version: id, recorded: version.digest, computed: digest });
            }
            let recorded = version.statistics.live_tokens;
            if tokens != recorded {
                damage.push(Damage::Tokens { version: id, recorded, computed: tokens });
            }
        }
        damage
    }
}
