//! Plans which sealed files are rewritten, so that a search costs only the live rows.
//!
//! In: for each file, how many rows it holds, how many of them are hot, and whether it has lists. Out: the files whose rows are
//! to be sorted into hot and cold ones.
//!
//! ```text
//!  hot: alive in a head             all rows of a file are hot ──► kept, but small files together get lists
//!                                   none is hot ──────────────────► cold: searches of heads skip it; small ones are merged
//!                                   both, and many such ──────────► its hot rows go to one file, the rest to another
//! ```
//!
//! **Invariant:** the result of a plan causes no new plan while no entry is inserted or retracted. A row is rewritten a bounded
//! number of times for each change of the hot rows around it: a file is sorted once a third of it is cold.

/// The data of a file for planning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tier {
    pub(super) rows: usize,
    pub(super) hot: usize,
    pub(super) clustered: bool,
}

/// The sizes for planning, in rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sizes {
    /// A full tail.
    pub(super) seal: usize,
    /// So many rows are scanned without lists; no plan takes many more, because they are all in memory.
    pub(super) block: usize,
    /// Rows per list: shorter lists need fewer scored rows for the same recall, and longer training.
    pub(super) list: usize,
}

impl Sizes {
    /// Returns the sizes that go with full tails of so many rows.
    pub(super) const fn of_seal(seal: usize) -> Self {
        Self { seal, block: 16 * seal, list: seal.div_ceil(128) }
    }

    /// Returns the number of lists for so many rows, if lists are worth it.
    pub(super) fn lists(self, rows: usize) -> Option<usize> {
        (rows >= self.few()).then_some(rows / self.list)
    }

    /// Returns the fewest rows that get lists.
    const fn few(self) -> usize {
        4 * self.seal
    }

    /// Returns how many cold rows in files with hot ones justify rewriting files.
    pub(super) fn superfluous(self, hot: usize) -> usize {
        (hot / 4).max(self.seal.div_ceil(4))
    }

    /// Returns how many hot rows may be without lists if there are `hot` in all: scanning them is a small part of a search.
    fn without_lists(self, hot: usize) -> usize {
        if hot <= 2 * self.block { self.block } else { (hot / 32).clamp(self.few(), self.block) }
    }
}

impl Tier {
    /// A smaller hot part of a large file stays there: otherwise each return of an old state would move it.
    const LUKEWARM: usize = 64;

    const fn cold(self) -> usize {
        self.rows - self.hot
    }

    fn is_mixed(self, sizes: Sizes) -> bool {
        let is_enough = self.hot * Self::LUKEWARM >= self.rows || (self.hot > 0 && self.rows <= 2 * sizes.seal);
        3 * self.cold() > self.rows && is_enough
    }

    fn is_hot(self) -> bool {
        3 * self.cold() <= self.rows
    }
}

/// Returns the positions of the files to rewrite together, in the order of `files`; none if nothing is to be done.
pub(super) fn plan(files: &[Tier], sizes: Sizes) -> Vec<usize> {
    let hot: usize = files.iter().map(|file| file.hot).sum();
    let of = |wanted: &dyn Fn(&Tier) -> bool| -> Vec<usize> {
        files.iter().enumerate().filter(|(_, file)| wanted(file)).map(|(at, _)| at).collect()
    };
    let rows = |places: &[usize]| -> usize { places.iter().map(|&at| files[at].rows).sum() };

    let mixed = of(&|file| file.is_mixed(sizes));
    let superfluous: usize = mixed.iter().map(|&at| files[at].cold()).sum();
    if superfluous >= sizes.superfluous(hot) {
        return take(mixed, files, sizes.block);
    }
    let small_and_hot = of(&|file| !file.clustered && file.is_hot());
    if rows(&small_and_hot) >= sizes.without_lists(hot) {
        return take(small_and_hot, files, sizes.block);
    }
    let small_and_cold = of(&|file| file.hot == 0 && file.rows < sizes.block / 2);
    if rows(&small_and_cold) >= sizes.block {
        return take(small_and_cold, files, sizes.block);
    }
    Vec::new()
}

/// Returns the first of `places` that have `rows` rows together.
fn take(places: Vec<usize>, files: &[Tier], rows: usize) -> Vec<usize> {
    let mut taken = 0;
    let enough = |at: &usize| {
        let more = taken < rows;
        taken += files[*at].rows;
        more
    };
    places.into_iter().take_while(enough).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: Sizes = Sizes::of_seal(16);

    /// Rewrites files as planned, as the writer does, until nothing is planned; returns how many rows that wrote.
    fn settle(files: &mut Vec<Tier>) -> usize {
        let mut written = 0;
        for round in 0.. {
            assert!(round < 1000, "plans never end: {files:?}");
            let planned = plan(files, SIZES);
            if planned.is_empty() {
                break;
            }
            let (mut hot, mut cold) = (0, 0);
            for &at in planned.iter().rev() {
                let file = files.remove(at);
                (hot, cold) = (hot + file.hot, cold + file.cold());
            }
            written += hot + cold;
            assert!(hot + cold < 4 * SIZES.block, "{} rows are in memory at once", hot + cold);
            let lists = |rows: usize| SIZES.lists(rows).is_some();
            files.extend((cold > 0).then_some(Tier { rows: cold, hot: 0, clustered: lists(cold) }));
            files.extend((hot > 0).then_some(Tier { rows: hot, hot, clustered: lists(hot) }));
        }
        written
    }

    proptest! {
        #![proptest_config(crate::index::cases(128))]

        #[test]
        fn whatever_dies_a_head_meets_hardly_more_than_what_lives(
            deaths in prop::collection::vec((0_usize..100, 0_usize..40), 1..60),
        ) {
            let mut files = Vec::new();
            let (mut written, mut came) = (0, 0);
            for (kind, share) in deaths {
                let fresh = 1 + kind % 40;
                came += fresh;
                files.push(Tier { rows: SIZES.seal, hot: SIZES.seal, clustered: false });
                came += SIZES.seal;
                // A share of each file dies.
                for file in &mut files {
                    file.hot -= file.hot * share / 100;
                }
                written += settle(&mut files);
                let hot: usize = files.iter().map(|file| file.hot).sum();
                let cold_met: usize = files.iter().filter(|file| file.hot > 0).map(|file| file.cold()).sum();
                // Files that are kept may be cold to a third; then a quarter of the live rows, or a small part of a tail.
                let lukewarm: usize = files.iter().filter(|file| file.hot * Tier::LUKEWARM < file.rows && file.rows > 2 * SIZES.seal).map(|file| file.rows).sum();
                prop_assert!(cold_met <= hot / 2 + hot / 4 + 2 * SIZES.seal + lukewarm, "{cold_met} beside {hot}: {files:?}");
                let flat: usize = files.iter().filter(|file| !file.clustered && file.is_hot()).map(|file| file.rows).sum();
                prop_assert!(flat < SIZES.block, "{flat} rows without lists");
            }
            prop_assert!(written <= 12 * came, "{written} rows written for {came}");
        }
    }

    #[test]
    fn one_that_comes_back_moves_no_cold_file() {
        let files = [Tier { rows: 10_000, hot: 1, clustered: true }, Tier { rows: 100, hot: 100, clustered: false }];
        assert!(plan(&files, SIZES).is_empty());
    }
}
