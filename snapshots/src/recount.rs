//! Recounts the tokens of every version at once.
//!
//! In: for each ordinal its tokens under today's analyzer. Out: one record, if the log has other counts.
//!
//! **Invariant:** the entries and the digest of a version stay. Afterwards the tokens of every kept version are the sums over its
//! entries. The record is one group of the log, so it is there as a whole or not at all, and a second recount writes nothing. It
//! takes no epoch of its own. A dropped version keeps its old tokens, because its entries may be gone.

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::ordinal::Ordinal;
use crate::tokens::Tokens;
use crate::verify::TokensOf;
use crate::version::Record;

impl Archive {
    /// Sets the tokens of every kept version to those of its entries; returns whether any changed.
    ///
    /// The cost is the sum of the deltas.
    ///
    /// # Errors
    /// Fails if an entry of a kept version is unknown, if a delta does not fit its base, and if the log cannot be written; the
    /// tokens stay then.
    pub fn recount(&mut self, tokens_of: TokensOf<'_>) -> Result<bool, ArchiveError> {
        let stood: Vec<Tokens> = self.versions().iter().map(|version| version.statistics.live_tokens).collect();
        let mut live_tokens = stood.clone();
        for at in 0..live_tokens.len() {
            let version = self.versions()[at].id;
            if self.is_dropped(version) {
                continue;
            }
            let changes = self.changes_since_kept(version)?;
            let mut tokens = self.kept_base(version).map_or_else(Tokens::default, |base| live_tokens[base.index()]);
            for (entries, come) in [(&changes.entries.inserted, true), (&changes.entries.retracted, false)] {
                for ordinal in entries.iter().map(Ordinal::new) {
                    let counts = tokens_of(ordinal).ok_or(ArchiveError::Inexact { version })?;
                    if come { tokens.add(counts) } else { tokens.remove(counts) }
                }
            }
            live_tokens[at] = tokens;
        }
        if live_tokens == stood {
            return Ok(false);
        }
        self.append(&[Record::Recounted { epoch: self.history.epoch, live_tokens }])?;
        Ok(true)
    }
}
