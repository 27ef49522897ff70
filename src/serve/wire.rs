//! The shapes of JSON that scripts rely on: the only public types that are serialised.
//!
//! In: results of the modules before. Out: one struct for each line that a command prints.
//!
//! **Invariant:** a field keeps its name and meaning once released; new ones may come. A path is shown with replacement
//! characters, and where it is not UTF-8 its bytes stand beside it in base64.

use crate::index::apply::Published;
use crate::index::audit::Finding;
use crate::search::{Answer, Hit, Ranked, Selected, show_time};
use base64::Engine;
use dataflows::data::DocumentPath;
use serde::Serialize;
use std::collections::BTreeMap;

/// A path, and its bytes where it is not UTF-8.
#[derive(Clone, Debug, Serialize)]
pub struct WirePath {
    /// As text.
    pub path: String,
    /// In standard padded base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
}

impl From<&DocumentPath> for WirePath {
    fn from(path: &DocumentPath) -> Self {
        let bytes = path.as_bytes();
        let odd = std::str::from_utf8(bytes).is_err();
        Self {
            path: path.display().into_owned(),
            path_bytes: odd.then(|| base64::engine::general_purpose::STANDARD.encode(bytes)),
        }
    }
}

/// A line of `track`: one published epoch.
#[derive(Debug, Serialize)]
pub struct EpochLine {
    epoch: u64,
    source: String,
    view: Option<String>,
    commit: String,
    parent: Option<String>,
    time: String,
    documents: DocumentCounts,
    work: WorkCounts,
    live_entries: u64,
    digest: String,
    ms: Milliseconds,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repaired: bool,
}

#[derive(Debug, Serialize)]
struct DocumentCounts {
    added: u64,
    changed: u64,
    removed: u64,
}

/// What an epoch, or all of them, took.
#[derive(Debug, Default, Serialize)]
pub struct WorkCounts {
    /// Contents that were cleaned.
    pub cleaned: u64,
    /// Texts that were cut.
    pub chunked: u64,
    /// Texts that were given to the model.
    pub embedded: u64,
    /// Entries that came to life.
    pub inserted: u64,
    /// Entries that died.
    pub retracted: u64,
    /// Inputs that the memo answered.
    pub cache_hits: u64,
    /// Inputs that ended as a fault.
    pub faults: u64,
}

impl WorkCounts {
    /// Adds a receipt.
    pub fn add(&mut self, receipt: &crate::store::Receipt) {
        self.cleaned += receipt.cleaned;
        self.chunked += receipt.chunked;
        self.embedded += receipt.embedded;
        self.inserted += receipt.inserted;
        self.retracted += receipt.retracted;
        self.cache_hits += receipt.cache_hits;
        self.faults += receipt.faults;
    }
}

#[derive(Debug, Serialize)]
struct Milliseconds {
    diff: f32,
    clean: f32,
    chunk: f32,
    embed: f32,
    apply: f32,
    total: f32,
}

impl EpochLine {
    /// Returns the line of a published epoch.
    #[must_use]
    pub fn new(published: &Published) -> Self {
        let (version, receipt) = (&published.version, &published.receipt);
        let mut work = WorkCounts::default();
        work.add(receipt);
        let [diff, clean, chunk, embed, apply, total] = receipt.ms;
        Self {
            epoch: published.epoch.get(),
            source: published.source.clone(),
            view: published.view.clone(),
            commit: version.commit.to_string(),
            parent: version.parent.map(|parent| parent.to_string()),
            time: show_time(version.time),
            documents: DocumentCounts { added: receipt.added, changed: receipt.changed, removed: receipt.removed },
            work,
            live_entries: version.statistics.live_entries,
            digest: version.digest.to_string(),
            ms: Milliseconds { diff, clean, chunk, embed, apply, total },
            repaired: published.repaired,
        }
    }
}

/// The last line of `track --once`.
#[derive(Debug, Serialize)]
pub struct SummaryLine {
    /// The sums.
    pub summary: Summary,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// Lines printed.
    pub epochs: u64,
    /// Entries that came to life.
    pub inserted: u64,
    /// Entries that died.
    pub retracted: u64,
    /// Texts that were given to the model.
    pub embedded: u64,
    /// From start to end.
    pub seconds: f64,
}

/// A version that was searched.
#[derive(Debug, Serialize)]
pub struct At {
    source: String,
    view: Option<String>,
    commit: String,
    epoch: u64,
    lag_ms: u64,
}

impl At {
    /// Returns the shape of a selected version that is `lag_ms` behind its source.
    #[must_use]
    pub fn new(selected: &Selected, lag_ms: u64) -> Self {
        Self {
            source: selected.source_name.clone(),
            view: selected.view.clone(),
            commit: selected.commit.to_string(),
            epoch: selected.epoch,
            lag_ms,
        }
    }
}

/// The answer of `search`.
#[derive(Debug, Serialize)]
pub struct SearchAnswer {
    query: String,
    mode: &'static str,
    at: Vec<At>,
    exact: bool,
    took_ms: f64,
    hits: Vec<WireHit>,
}

#[derive(Debug, Serialize)]
struct WireHit {
    rank: usize,
    score: f32,
    source: String,
    #[serde(flatten)]
    path: WirePath,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    lines: Option<[u32; 2]>,
    kind: &'static str,
    language: Option<String>,
    symbol: Option<String>,
    labels: BTreeMap<String, String>,
    introduced_in: Option<String>,
    text: String,
    from: WireRanks,
}

#[derive(Debug, Serialize)]
struct WireRanks {
    #[serde(skip_serializing_if = "Option::is_none")]
    bm25: Option<WireRank>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<WireRank>,
}

#[derive(Debug, Serialize)]
struct WireRank {
    rank: usize,
    score: f32,
}

impl From<Ranked> for WireRank {
    fn from(Ranked { rank, score }: Ranked) -> Self {
        Self { rank, score }
    }
}

/// Returns nothing for an empty text.
#[must_use]
pub fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl WireHit {
    fn new(hit: Hit) -> Self {
        Self {
            rank: hit.rank,
            score: hit.score,
            source: hit.source,
            path: WirePath::from(&hit.path),
            paths: hit.paths.iter().map(|path| path.display().into_owned()).collect(),
            lines: hit.lines.map(|lines| [lines.first, lines.last]),
            kind: hit.kind.as_str(),
            language: non_empty(&hit.card.language),
            symbol: non_empty(&hit.card.symbol),
            labels: hit.card.labels.into_iter().collect(),
            introduced_in: hit.introduced_in.map(|introduced| introduced.to_string()),
            text: hit.text,
            from: WireRanks { bm25: hit.bm25.map(WireRank::from), vector: hit.vector.map(WireRank::from) },
        }
    }
}

impl SearchAnswer {
    /// Returns the shape of an answer.
    #[must_use]
    pub fn new(query: &str, mode: &'static str, answer: Answer, at: Vec<At>) -> Self {
        Self {
            query: query.to_owned(),
            mode,
            at,
            exact: answer.exact,
            took_ms: answer.took.as_secs_f64() * 1000.0,
            hits: answer.hits.into_iter().map(WireHit::new).collect(),
        }
    }
}

/// A line of `snapshots list`.
#[derive(Debug, Serialize)]
pub struct SnapshotLine {
    /// The commit.
    pub commit: String,
    /// The source's name.
    pub source: String,
    /// The views that stand at it.
    pub views: Vec<String>,
    /// When it was published.
    pub epoch: u64,
    /// The committer's time.
    pub time: String,
    /// The first parent.
    pub parent: Option<String>,
    /// Entries alive in it.
    pub live_entries: u64,
    /// Entries that came to life against its base.
    pub inserted: u64,
    /// Entries that died against its base.
    pub retracted: u64,
    /// The digest.
    pub digest: String,
    /// Bytes in the version log.
    pub bytes: u64,
}

/// A line of `snapshots diff`.
#[derive(Clone, Debug, Serialize)]
pub struct DiffLine {
    /// `+` or `-`.
    pub op: &'static str,
    /// Where.
    #[serde(flatten)]
    pub path: WirePath,
    /// What kind of thing.
    pub kind: &'static str,
    /// The qualified name.
    pub symbol: Option<String>,
    /// The text.
    pub text: String,
}

/// The answer of `snapshots export` and `snapshots import`.
#[derive(Debug, Serialize)]
pub struct CopyLine {
    /// The commit.
    pub commit: String,
    /// The source's name.
    pub source: String,
    /// Entries of the snapshot.
    pub live_entries: u64,
    /// Its digest.
    pub digest: String,
    /// Bytes that were written, of an export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether the store had the snapshot already, of an import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<bool>,
}

/// A line of `bisect` while it searches.
#[derive(Debug, Serialize)]
pub struct BisectStepLine {
    /// From 1.
    pub step: usize,
    /// The snapshot that was searched.
    pub commit: String,
    /// The best rank of the expected document, if it is among the first k.
    pub rank: Option<usize>,
}

/// What `bisect` found.
#[derive(Debug, Serialize)]
pub struct BisectAnswer {
    /// The first snapshot whose answer has the document no more.
    pub first_bad: String,
    /// The one before it.
    pub last_good: String,
    /// The source's name.
    pub source: String,
    /// When the first bad one was published.
    pub epoch: u64,
    /// Its committer's time.
    pub time: String,
    /// Snapshots on the line, both ends included.
    pub snapshots: usize,
    /// How many searches it took.
    pub searches: usize,
}

/// A line of `bisect` about an entry of the expected document that came or went, or an entry that overtook it.
#[derive(Debug, Serialize)]
pub struct BisectChange {
    /// The entry; `=` where it was there before.
    #[serde(flatten)]
    pub change: DiffLine,
    /// Its rank in the first bad snapshot, if it was not in front before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overtook_at: Option<usize>,
}

/// A line of `dump`.
#[derive(Debug, Serialize)]
pub struct DumpLine {
    /// The source's name.
    pub source: String,
    /// Where.
    #[serde(flatten)]
    pub path: WirePath,
    /// What kind of thing.
    pub kind: &'static str,
    /// The qualified name.
    pub symbol: Option<String>,
    /// On which lines.
    pub lines: Option<[u32; 2]>,
    /// Names the text.
    pub text_hash: String,
    /// Names the vector's bits, nothing for an entry without a vector.
    pub vector_hash: Option<String>,
    /// The commit that brought it.
    pub introduced_in: Option<String>,
}

/// A line of `snapshots verify`: something that does not fit.
#[derive(Debug, Serialize)]
pub struct FindingLine {
    /// Where.
    pub part: &'static str,
    /// What is wrong.
    pub problem: String,
    /// The damaged file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The commit of the version where it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How many entries or documents it is about.
    pub count: u64,
    /// The first of their paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// What to do.
    pub next: &'static str,
}

impl FindingLine {
    /// Returns the shape of a finding that begins at a commit.
    #[must_use]
    pub fn new(finding: &Finding, commit: Option<String>) -> Self {
        Self {
            part: finding.part,
            problem: finding.problem.clone(),
            file: finding.file.as_ref().map(|file| file.display().to_string()),
            commit,
            count: finding.count,
            paths: finding.paths.iter().map(|path| path.display().into_owned()).collect(),
            next: finding.next,
        }
    }
}

/// The last line of `snapshots verify`.
#[derive(Debug, Serialize)]
pub struct VerifySummaryLine {
    /// The counts.
    pub summary: VerifySummary,
}

/// What `snapshots verify` checked.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct VerifySummary {
    /// Lines printed.
    pub findings: u64,
    /// Versions whose digest and counts were computed again.
    pub versions: u64,
    /// Entries that some version reaches.
    pub entries: u64,
    /// Rows of documents that some version reaches.
    pub documents: u64,
    /// Vectors that were compared, bit for bit.
    pub vectors: u64,
    /// Files whose checksums were computed again.
    pub files: u64,
    /// Entries in an index that no version reaches.
    pub orphans: u64,
    /// From start to end.
    pub seconds: f64,
}

/// The answer of `status`.
#[derive(Debug, Serialize)]
pub struct StatusAnswer {
    /// Every source.
    pub sources: Vec<SourceStatus>,
    /// Entries that are stored, alive or not.
    pub entries: u64,
    /// Bytes on disk by part.
    pub bytes: BTreeMap<&'static str, u64>,
    /// All work since the store was made.
    pub work: WorkCounts,
}

/// One source in `status`.
#[derive(Debug, Serialize)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// `git` or `directory`.
    pub kind: &'static str,
    /// Its views.
    pub views: Vec<ViewStatus>,
    /// Documents of the newest version.
    pub documents: u64,
    /// Files that are no documents, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// What went wrong with which document.
    pub faults: Vec<FaultStatus>,
}

/// One view in `status`.
#[derive(Debug, Serialize)]
pub struct ViewStatus {
    /// Its name.
    pub name: String,
    /// The commit that it stands at.
    pub commit: String,
    /// When it moved there.
    pub epoch: u64,
    /// First-parent commits of the ref that have no snapshot yet; nothing where the source cannot be asked.
    pub behind: Option<u64>,
    /// Entries alive in it.
    pub live_entries: u64,
}

/// One fault in `status`.
#[derive(Debug, Serialize)]
pub struct FaultStatus {
    /// Where.
    #[serde(flatten)]
    pub path: WirePath,
    /// Which stage failed.
    pub stage: &'static str,
    /// What was tried and why it failed.
    pub error: String,
    /// The commit since which it is so.
    pub since: Option<String>,
}
