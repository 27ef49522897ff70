//! Lost index files while garbage rows stay: entries that come back are complete at once, also in a running tracker; and until
//! then no incomplete answer is called exact.
//!
//! **Invariant:** the reference is built from scratch, from a repository with the one commit.

use super::*;
use crate::support::Running;
use std::fs;

/// The lost files.
#[derive(Clone, Copy, Debug)]
enum Lost {
    /// All files of vectors, or of words.
    Folder(bool),
    /// One file of vectors, or of words.
    File(bool, usize),
}

impl Lost {
    fn lose(self, layout: &Layout) {
        let folder = |of_vectors| if of_vectors { layout.vectors() } else { layout.lexical() };
        match self {
            Self::Folder(of_vectors) => fs::remove_dir_all(folder(of_vectors)).unwrap_or_default(),
            Self::File(of_vectors, number) => {
                // Files of vectors stand in the folder of their set.
                let mut sets = fs::read_dir(folder(of_vectors)).into_iter().flatten().flatten().map(|set| set.path());
                let folder = sets.find(|set| of_vectors && set.is_dir()).unwrap_or_else(|| folder(of_vectors));
                let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
                let is_kept = |path: &Path| path.file_name().unwrap().to_string_lossy().starts_with('.');
                let mut files: Vec<_> = files.filter(|path| path.is_file() && !is_kept(path)).collect();
                files.sort();
                if !files.is_empty() {
                    fs::remove_file(&files[number % files.len()]).unwrap();
                }
            }
        }
    }
}

fn losses() -> impl Strategy<Value = Lost> {
    prop_oneof![
        any::<bool>().prop_map(Lost::Folder),
        (any::<bool>(), 0..64_usize).prop_map(|(of_vectors, number)| Lost::File(of_vectors, number)),
    ]
}

#[derive(Clone, Debug)]
enum Happens {
    Step(Step),
    /// A collection that keeps so many of each view and may stop before one of its steps.
    Collect(usize, Option<usize>),
    /// A reader opens the store and holds its lease, until the next one opens or it is dropped.
    Hold(bool),
    Lose(Lost),
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let happens = prop_oneof![
        3 => (1..3_usize, prop::option::of(0..6_usize)).prop_map(|(newest, stop)| Happens::Collect(newest, stop)),
        2 => any::<bool>().prop_map(Happens::Hold),
        3 => losses().prop_map(Happens::Lose),
    ];
    let between = prop::collection::vec((0..40_usize, happens), 6..14);
    (steps(16..36), between).prop_map(|(steps, between)| {
        let mut happenings: Vec<Happens> = steps.into_iter().map(Happens::Step).collect();
        for (at, happens) in between {
            happenings.insert(at.min(happenings.len()), happens);
        }
        happenings.push(Happens::Step(Step::Sync));
        happenings
    })
}

/// A store whose files are occasionally lost, with its required answers.
struct World {
    history: History,
    store: Store,
    running: Option<Running>,
    /// A reader, with its answers at the time when it opened the store.
    held: Option<(Searcher, CommitId, Picture)>,
    /// Whether files were lost since anything was published or a tracker began.
    is_broken: bool,
    truths: BTreeMap<CommitId, Picture>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            history: History::new(),
            store: Store::new(),
            running: None,
            held: None,
            is_broken: false,
            truths: BTreeMap::new(),
        };
        world.take(&Happens::Step(Step::Sync));
        world
    }

    fn take(&mut self, happens: &Happens) {
        match happens {
            Happens::Step(step) => {
                self.history.take(*step);
                match step {
                    Step::Sync => self.sync(),
                    Step::Restart => self.running = None,
                    _ => {}
                }
            }
            Happens::Collect(keep, stop) => {
                self.running = None;
                let mut asked = 0;
                let mut go_on = || {
                    asked += 1;
                    stop.is_none_or(|stop| asked <= stop)
                };
                collect(&self.store.layout(), &newest(self.history.repository.path(), *keep), &mut go_on).unwrap();
                self.is_broken = false;
            }
            Happens::Hold(false) => self.let_go(),
            Happens::Hold(true) => {
                self.let_go();
                if !self.is_broken {
                    let searcher = self.store.searcher();
                    let head = head_of(&searcher);
                    let picture = Picture::of(&searcher, Some(&head.to_string()));
                    self.held = Some((searcher, head, picture));
                }
            }
            Happens::Lose(lost) => {
                lost.lose(&self.store.layout());
                self.is_broken = true;
            }
        }
    }

    /// Drops the reader, which answers as before.
    fn let_go(&mut self) {
        if let Some((searcher, head, picture)) = self.held.take() {
            Picture::of(&searcher, Some(&head.to_string())).assert_equals(&picture, head);
        }
    }

    fn sync(&mut self) {
        let source = git(self.history.repository.path(), &["*"], None);
        let is_new = self.running.is_none();
        let running = self.running.get_or_insert_with(|| self.store.open(source));
        let published = running.catch_up();
        self.history.synced();
        self.is_broken &= !is_new && published.is_empty();
        let heads: BTreeSet<CommitId> = self.history.heads().collect();
        for head in heads {
            let truth = self.truths.entry(head).or_insert_with(|| rebuilt(&self.history.repository, head));
            if self.is_broken {
                claims_nothing_wrong(&self.store.layout(), head, truth);
                continue;
            }
            let searcher = self.store.searcher();
            Picture::of(&searcher, Some(&head.to_string())).assert_equals(truth, head);
            let request = Request { at: Some(head.to_string()), mode: Mode::Vector, ..Request::new("camera") };
            assert!(searcher.search(&request).unwrap().exact, "nothing is missing at {head}");
        }
        if !self.is_broken {
            assert_eq!(check(&self.store.layout()).findings, []);
        }
    }
}

fn head_of(searcher: &Searcher) -> CommitId {
    let selected = searcher.revisions().select(searcher.reader(), None, None, None).unwrap().remove(0);
    searcher.reader().with_archive(|archive| archive.version(selected.version).unwrap().commit)
}

/// Returns the answers of a store that was built from scratch at one commit.
fn rebuilt(repository: &Repository, commit: CommitId) -> Picture {
    let (alone, store) = (repository.at(commit), Store::new());
    store.track(git(alone.path(), &["main"], None));
    Picture::of(&store.searcher(), Some(&commit.to_string()))
}

/// Searches a store that lacks files: it fails, or says that it is not exact, or answers as required.
fn claims_nothing_wrong(layout: &Layout, commit: CommitId, truth: &Picture) {
    let Ok(searcher) = Searcher::open(layout) else { return };
    for (question, _, expected) in truth.answers.iter().filter(|(_, mode, _)| *mode == "vector") {
        let request = Request {
            at: Some(commit.to_string()),
            mode: Mode::Vector,
            k: 25,
            per_document: 4,
            ..Request::new(*question)
        };
        if let Ok(answer) = searcher.search(&request)
            && answer.exact
        {
            let found: Vec<_> = answer.hits.iter().map(|hit| (hit.score.to_bits(), hit.text.clone())).collect();
            let expected: Vec<_> = expected.iter().map(|hit| hit.score_and_text()).collect();
            assert_eq!(found, expected, "`{question}` as of {commit} is called exact");
        }
    }
}

proptest! {
    #![proptest_config(support::cases(4))]

    #[test]
    fn what_comes_back_after_files_were_lost_is_whole(happenings in happenings()) {
        let mut world = World::new();
        for happens in &happenings {
            world.take(happens);
        }
        world.let_go();
    }
}

/// A history whose first commit only a living reader still holds.
fn held_back() -> World {
    let mut world = World::new();
    world.take(&Happens::Hold(true));
    for step in [Step::Write(0, 3), Step::Write(9, 4), Step::Delete(11), Step::Write(6, 5), Step::Sync] {
        world.take(&Happens::Step(step));
    }
    world.take(&Happens::Collect(1, None));
    world
}

#[test]
fn what_a_reader_held_back_comes_back_whole_after_files_were_lost() {
    for of_vectors in [true, false] {
        for lost in [Lost::Folder(of_vectors), Lost::File(of_vectors, 0)] {
            let mut world = held_back();
            let layout = world.store.layout();
            assert_eq!((check(&layout).findings, check(&layout).incomplete), (Vec::new(), 0));
            world.take(&Happens::Lose(lost));
            // The start rebuilds what kept snapshots reach, and no more.
            world.take(&Happens::Step(Step::Sync));
            let checked = check(&layout);
            assert_eq!(checked.findings, [], "{lost:?}");
            assert!(checked.incomplete > 0, "{lost:?}: rows are left that no snapshot reaches");
            world.take(&Happens::Step(Step::Revert(0)));
            world.take(&Happens::Step(Step::Sync));
            world.let_go();
        }
    }
}

#[test]
fn what_is_lost_under_a_tracker_is_made_again_by_its_next_publish() {
    for lost in [true, false].map(|of_vectors| [Lost::Folder(of_vectors), Lost::File(of_vectors, 3)]).as_flattened() {
        let mut world = World::new();
        world.take(&Happens::Step(Step::Write(1, 2)));
        world.take(&Happens::Step(Step::Sync));
        world.take(&Happens::Lose(*lost));
        world.take(&Happens::Step(Step::Sync));
        assert!(world.is_broken, "nothing was published");
        world.take(&Happens::Step(Step::Line(0, 1, 5)));
        world.take(&Happens::Step(Step::Sync));
        assert!(!world.is_broken);
    }
}
