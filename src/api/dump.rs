//! `dump`: every live entry, so that two stores can be compared with `diff`.
//!
//! In: a place and a revision. Out: lines, sorted by source, path and position; no ordinals, which depend on history.

use super::wire::{DumpLine, WirePath, non_empty};
use super::{ApiError, Place, Service};
use crate::index::Given;
use crate::search::{IntroducedIn, Selected, introduced, placed_entries};
use dataflows::data::{Document, PlacedEntry};
use snapshots::Ordinal;

impl Service {
    /// Calls `with` with the line of each live entry, until it fails.
    ///
    /// # Errors
    /// Where the revision is unknown, the store cannot be read, or `with` fails.
    pub fn dump<E: From<ApiError>>(
        &self,
        place: &Place,
        at: Option<&str>,
        mut with: impl FnMut(DumpLine) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut selected = self.select(place, at)?;
        selected.sort_by(|left, right| left.source_name.cmp(&right.source_name));
        for selected in &selected {
            let alive = self.searcher.reader().with_archive(|archive| archive.bitmaps(selected.version));
            let alive = alive.map_err(ApiError::from)?;
            let rows = self.searcher.reader().catalogue().documents(alive.documents.iter().map(Ordinal::new));
            let mut documents: Vec<Document> = rows.map_err(ApiError::from)?;
            documents.sort_by(|left, right| left.path.cmp(&right.path));
            for document in documents {
                self.lines_of(selected, &alive.entries, &document)?.into_iter().try_for_each(&mut with)?;
            }
        }
        Ok(())
    }

    /// Returns the lines of one document's entries, in the order in which they stand.
    fn lines_of(
        &self,
        selected: &Selected,
        alive: &roaring::RoaringBitmap,
        document: &Document,
    ) -> Result<Vec<DumpLine>, ApiError> {
        let reader = self.searcher.reader();
        let placed = placed_entries(reader, document)?;
        let ordinals = reader.catalogue().entry_ordinals(placed.iter().map(|placed| placed.entry.id()))?;
        let ordinals: Option<Vec<Ordinal>> =
            ordinals.into_iter().map(|ordinal| ordinal.filter(|ordinal| alive.contains(ordinal.get()))).collect();
        let ordinals = ordinals.ok_or_else(|| ApiError::Missing { what: format!("an entry of {}", document.path) })?;
        let introduced = introduced(reader, selected, &ordinals)?;
        let line = |((placed, introduced), ordinal): ((PlacedEntry, Option<IntroducedIn>), Ordinal)| {
            let vector_hash = match reader.vector_of(ordinal)? {
                Given::Vector(components) => {
                    let bytes: Vec<u8> = components.iter().flat_map(|part| part.to_le_bytes()).collect();
                    Some(blake3::hash(&bytes).to_hex()[..32].to_owned())
                }
                Given::NoVector | Given::Owed(_) => None,
            };
            Ok(DumpLine {
                source: selected.source_name.clone(),
                path: WirePath::from(&placed.entry.path),
                kind: placed.card.kind.as_str(),
                symbol: non_empty(&placed.card.symbol),
                lines: Some([placed.lines.first, placed.lines.last]),
                text_hash: placed.entry.text.to_string(),
                vector_hash,
                introduced_in: introduced.map(|introduced| introduced.to_string()),
            })
        };
        placed.into_iter().zip(introduced).zip(ordinals).map(line).collect()
    }
}
