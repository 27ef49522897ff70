//! `bisect`: the first snapshot at which the answer fell out of the first k, and what changed there.
//!
//! In: a request, the path that is expected, a snapshot that has it and one that has not. Out: a line a search, the snapshot,
//! and the entries that came, went and overtook.

use super::wire::{BisectAnswer, BisectChange, BisectStepLine, DiffLine, non_empty};
use super::{ApiError, Service};
use crate::search::{Bisection, Request, bisect, show_time};
use dataflows::data::DocumentPath;

impl Service {
    /// Finds where a document fell out of an answer; calls `look` after each search.
    ///
    /// # Errors
    /// Where a revision is unknown, the ends do not differ, or one does not lead to the other.
    pub fn bisect(
        &self,
        request: &Request,
        path: &DocumentPath,
        [good, bad]: [&str; 2],
        mut look: impl FnMut(BisectStepLine),
    ) -> Result<(BisectAnswer, Vec<BisectChange>), ApiError> {
        let mut step = 0;
        let found = bisect(&self.searcher, request, path, good, bad, &mut |searched| {
            step += 1;
            look(BisectStepLine {
                step,
                source: searched.at.source_name.clone(),
                view: searched.at.view.clone(),
                commit: searched.at.commit.to_string(),
                rank: searched.rank,
            });
        })?;
        self.bisected(path, &found)
    }

    fn bisected(&self, path: &DocumentPath, found: &Bisection) -> Result<(BisectAnswer, Vec<BisectChange>), ApiError> {
        let (from, to) = (&found.last_good.0, &found.first_bad.0);
        let (delta, time) = self.searcher.reader().with_archive(|archive| {
            let time = archive.version(to.version).map_or(0, |version| version.time);
            archive.diff(from.version, to.version).map(|delta| (delta, show_time(time)))
        })?;
        let answer = BisectAnswer {
            first_bad: to.commit.to_string(),
            last_good: from.commit.to_string(),
            source: to.source_name.clone(),
            epoch: to.epoch,
            time,
            snapshots: found.snapshots,
            searches: found.searches,
        };
        let came = self.changes(to, &delta.inserted, "+")?;
        let went = self.changes(to, &delta.retracted, "-")?;
        let own = path.display();
        let of_document = went.into_iter().chain(came.iter().cloned()).filter(|change| change.path.path == own);
        let mut changes: Vec<_> = of_document.map(|change| BisectChange { change, overtook_at: None }).collect();
        for hit in found.overtook(path) {
            let is_new = came.iter().any(|change| change.path.path == hit.path.display() && change.text == hit.text);
            let change = DiffLine {
                source: to.source_name.clone(),
                view: to.view.clone(),
                op: if is_new { "+" } else { "=" },
                path: (&hit.path).into(),
                kind: hit.kind.as_str(),
                symbol: non_empty(&hit.card.symbol),
                text: hit.text.clone(),
            };
            changes.push(BisectChange { change, overtook_at: Some(hit.rank) });
        }
        Ok((answer, changes))
    }
}
