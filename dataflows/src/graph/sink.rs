//! The end of the graph: changes gathered by epoch, on worker 0.
//!
//! In: rows and the vectors' progress. Out: per epoch a consolidated, sorted list of changes.
//!
//! **Invariant:** once the probe has passed an epoch, [`Gathered::take`] returns all of its changes, from all workers, and every
//! vector that they need is in the memo. The order within an epoch is that of the rows, not of their arrival.

use super::Row;
use crate::data::EmbedId;
use crate::stage::Time;
use differential_dataflow::VecCollection;
use differential_dataflow::consolidation::consolidate;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use timely::dataflow::ProbeHandle;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;

/// Changes by epoch, until they are taken.
#[derive(Default)]
pub(crate) struct Gathered(BTreeMap<Time, Vec<(Row, isize)>>);

impl Gathered {
    /// Returns the changes of an epoch that the probe has passed: sorted, consolidated, none for a quiet epoch.
    pub(crate) fn take(&mut self, time: Time) -> Vec<(Row, isize)> {
        let mut changes = self.0.remove(&time).unwrap_or_default();
        consolidate(&mut changes);
        changes
    }
}

/// Gathers `rows` on worker 0 and lets `probe` follow both inputs.
pub(super) fn gather<'s>(
    rows: VecCollection<'s, Time, Row>,
    vectors: VecCollection<'s, Time, EmbedId>,
    probe: &ProbeHandle<Time>,
) -> Rc<RefCell<Gathered>> {
    let gathered = Rc::new(RefCell::new(Gathered::default()));
    let stash = gathered.clone();
    let pact = Exchange::new(|_: &(Row, Time, isize)| 0);
    let progress = rows.inner.unary::<timely::container::CapacityContainerBuilder<Vec<()>>, _, _, _>(
        pact,
        "Gather",
        move |_capability, _info| {
            move |input, _output| {
                input.for_each(|_time, updates| {
                    let mut stash = stash.borrow_mut();
                    for (row, time, change) in updates.drain(..) {
                        stash.0.entry(time).or_default().push((row, change));
                    }
                });
            }
        },
    );
    progress.probe_with(probe);
    vectors.inner.probe_with(probe);
    gathered
}
