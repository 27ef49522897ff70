//! `snapshots list`, `show` and `diff`: the index of every commit, listed, shown and compared.
//!
//! In: a place and revisions. Out: lines, oldest first; of a comparison, by path and symbol.

use super::wire::{DiffLine, SnapshotLine, WirePath, non_empty};
use super::{ApiError, Place, Service};
use crate::search::{Selected, show_time};
use crate::store::Receipt;
use dataflows::memo::Memo;
use roaring::RoaringBitmap;
use snapshots::{Archive, Ordinal, Version};

/// One snapshot, and the receipt of the work that it took, if that is still there.
pub type Snapshot = (SnapshotLine, Option<Receipt>);

impl Service {
    /// Returns the newest version of a place and the snapshots before it on its line of first parents, oldest first, at most so
    /// many; each with its receipt.
    ///
    /// # Errors
    /// Where there is no such source or view, or the store cannot be read.
    pub fn line(&self, place: &Place, most: usize) -> Result<Vec<Snapshot>, ApiError> {
        let Some(newest) = self.select(place, None)?.first().map(|selected| selected.version) else {
            return Ok(Vec::new());
        };
        let reader = self.searcher.reader();
        let mut lines = reader.with_archive(|archive| {
            let line = archive.first_parents(newest).take_while(|version| !archive.is_dropped(version.id)).take(most);
            line.map(|version| (self.snapshot_line(archive, version), version.epoch)).collect::<Vec<_>>()
        });
        lines.reverse();
        lines.into_iter().map(|(line, epoch)| Ok((line, reader.catalogue().receipt(epoch)?))).collect()
    }

    /// Lists the snapshots of a place, oldest first.
    ///
    /// # Errors
    /// Where there is no such source or view.
    pub fn snapshots(&self, place: &Place) -> Result<Vec<SnapshotLine>, ApiError> {
        let listed = self.searcher.revisions().snapshots(self.searcher.reader(), place.source(), place.view())?;
        Ok(self.searcher.reader().with_archive(|archive| {
            let versions = listed.iter().filter_map(|version| archive.version(*version));
            versions.map(|version| self.snapshot_line(archive, version)).collect()
        }))
    }

    /// Returns one snapshot.
    ///
    /// # Errors
    /// Where the revision is unknown or means several versions, or the store cannot be read.
    pub fn snapshot(&self, place: &Place, rev: &str) -> Result<Snapshot, ApiError> {
        let selected = self.one(place, rev)?;
        let reader = self.searcher.reader();
        let found = reader.with_archive(|archive| {
            let version = archive.version(selected.version)?;
            Some((self.snapshot_line(archive, version), version.epoch))
        });
        let missing = || ApiError::Missing { what: format!("the version of {}", selected.commit) };
        let (line, epoch) = found.ok_or_else(missing)?;
        Ok((line, reader.catalogue().receipt(epoch)?))
    }

    /// Returns the entries that came and went from one snapshot to another.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn diff(&self, place: &Place, revisions: [&str; 2]) -> Result<Vec<DiffLine>, ApiError> {
        let reader = self.searcher.reader();
        let [from, to] = self.searcher.revisions().pair(reader, place.source(), place.view(), revisions)?;
        let delta = reader.with_archive(|archive| archive.diff(from.version, to.version))?;
        let mut lines = self.changes(&from, &delta.retracted, "-")?;
        lines.extend(self.changes(&to, &delta.inserted, "+")?);
        lines.sort_by(|left, right| {
            (&left.path.path, &left.symbol, right.op).cmp(&(&right.path.path, &right.symbol, left.op))
        });
        Ok(lines)
    }

    /// Returns the lines of entries that came or went, as entries of a version.
    pub(super) fn changes(
        &self,
        of: &Selected,
        ordinals: &RoaringBitmap,
        op: &'static str,
    ) -> Result<Vec<DiffLine>, ApiError> {
        let reader = self.searcher.reader();
        let records = reader.catalogue().entries_with_cards(ordinals.iter().map(Ordinal::new))?;
        let line = |(record, card): (crate::store::EntryRecord, dataflows::data::Card)| {
            let entry = record.entry;
            let missing = || ApiError::Missing { what: format!("a text of {}", entry.path) };
            let text = reader.memo().text(entry.text).ok_or_else(missing)?;
            let symbol = non_empty(&card.symbol);
            let (source, view) = (of.source_name.clone(), of.view.clone());
            Ok(DiffLine { source, view, op, path: WirePath::from(&entry.path), kind: card.kind.as_str(), symbol, text })
        };
        records.into_iter().map(line).collect()
    }

    fn snapshot_line(&self, archive: &Archive, version: &Version) -> SnapshotLine {
        let revisions = self.searcher.revisions();
        let source = revisions.sources().iter().find(|(id, _)| *id == version.source);
        let views = revisions.views_of(version.source).filter(|(id, _)| archive.view(*id) == Some(version.id));
        SnapshotLine {
            commit: version.commit.to_string(),
            source: source.map(|(_, record)| record.name.clone()).unwrap_or_default(),
            views: views.map(|(_, name)| name.to_owned()).collect(),
            epoch: version.epoch.get(),
            time: show_time(version.time),
            parent: version.parent.map(|parent| parent.to_string()),
            live_entries: version.statistics.live_entries,
            inserted: version.entries.inserted,
            retracted: version.entries.retracted,
            digest: version.digest.to_string(),
            bytes: version.bytes,
        }
    }
}
