//! Decides which refs are views: patterns over names, and the commit of each name.
//!
//! In: patterns, or none for the branch that HEAD names. Out: one [`Head`] per ref, sorted by the ref's full name.
//!
//! **Invariant:** a view's name is unique in its repository and follows from the refs alone: the short name; `heads/X` and
//! `tags/X` if a branch and a tag share it; the full name if even that is taken. An unreadable ref never hides other refs. A ref
//! is absent only if its absence was observed: libgit2 skips what it cannot read, so the folders of the refs are listed here as
//! well.
//!
//! A pattern without a leading `refs/` matches branches and tags only, so `*` does not track fetched refs in `refs/remotes`;
//! `refs/remotes/*` does.

use super::raw::{self, RawCommit};
use super::{Commit, GitError, GitSource, commit_id, read_commit};
use git2::{ErrorCode, Reference, Repository};
use globset::{GlobBuilder, GlobMatcher};
use rustc_hash::{FxHashMap, FxHashSet};
use snapshots::CommitId;
use std::io::ErrorKind;
use std::path::Path;

/// Consecutive read errors after which a listing of refs fails.
const MAX_ERRORS: usize = 1_000;

/// A glob over the names of refs; `*` crosses `/`.
///
/// ```
/// use tidemill::watch::git::RefPattern;
/// let pattern = RefPattern::parse("release/*")?;
/// assert!(pattern.matches("refs/heads/release/0.16/fixes"));
/// assert!(!pattern.matches("refs/remotes/origin/release/0.16"));
/// # Ok::<(), tidemill::watch::git::GitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RefPattern {
    text: String,
    matcher: GlobMatcher,
}

impl RefPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// If it is no glob.
    pub fn parse(pattern: &str) -> Result<Self, GitError> {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(false)
            .build()
            .map_err(|source| GitError::Pattern { pattern: pattern.to_owned(), source })?;
        Ok(Self { text: pattern.to_owned(), matcher: glob.compile_matcher() })
    }

    /// Tells whether the ref with this full name is meant.
    #[must_use]
    pub fn matches(&self, reference: &str) -> bool {
        if self.text.starts_with("refs/") {
            return self.matcher.is_match(reference);
        }
        let short = reference.strip_prefix(BRANCHES).or_else(|| reference.strip_prefix(TAGS));
        short.is_some_and(|short| self.matcher.is_match(short))
    }

    /// Tells whether HEAD itself is meant, by its name and not by a wildcard.
    fn is_head(&self) -> bool {
        self.text == HEAD
    }
}

pub(super) const BRANCHES: &str = "refs/heads/";
pub(super) const TAGS: &str = "refs/tags/";
pub(super) const HEAD: &str = "HEAD";

/// One ref that is a view, with its commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The name of the view.
    pub view: String,
    /// The ref's full name, or `HEAD` where that is detached.
    pub reference: String,
    /// Its commit; a tag is peeled.
    pub commit: Commit,
    /// Whether it is a tag, which is not expected to move.
    pub is_tag: bool,
}

/// The heads that patterns matched.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heads {
    /// The heads, sorted by full name.
    pub heads: Vec<Head>,
    /// Matched tags that name a tree or a blob instead of a commit.
    pub skipped_tags: usize,
    /// Matched refs that cannot be read (for example, a missing object), with the reason.
    pub broken: Vec<(String, String)>,
}

/// The state of HEAD.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeadState {
    /// It names this ref (`refs/heads/main`), which exists.
    Branch(String),
    /// It names this ref, which has no commit yet.
    Unborn(String),
    /// It names a commit directly.
    Detached(CommitId),
}

impl GitSource {
    /// Returns the state of HEAD.
    ///
    /// # Errors
    ///
    /// If HEAD cannot be read.
    pub fn head(&self) -> Result<HeadState, GitError> {
        head(&*self.pool.get()?)
    }

    /// Returns the full name of the branch that HEAD names, if it has a commit.
    ///
    /// # Errors
    ///
    /// If HEAD cannot be read.
    pub fn head_branch(&self) -> Result<Option<String>, GitError> {
        Ok(match self.head()? {
            HeadState::Branch(reference) => Some(reference),
            HeadState::Unborn(_) | HeadState::Detached(_) => None,
        })
    }

    /// Returns the heads that match the patterns; without patterns, the one that HEAD names (none while it is unborn).
    ///
    /// # Errors
    ///
    /// If the refs cannot be listed; a single ref that cannot be read is among [`Heads::broken`].
    pub fn heads(&self, patterns: &[RefPattern]) -> Result<Heads, GitError> {
        let repository = self.pool.get()?;
        let Listing { mut references, unreadable } = references(&repository)?;
        references.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let names = references.iter().map(|(name, _)| name).chain(unreadable.iter().map(|(name, _)| name));
        let views = view_names(names.map(String::as_str));
        let head = head(&repository)?;
        let wants_head = patterns.is_empty() || patterns.iter().any(RefPattern::is_head);
        let wanted = |name: &str| {
            (wants_head && head == HeadState::Branch(name.to_owned())) || patterns.iter().any(|p| p.matches(name))
        };
        let broken = unreadable.iter().filter(|(name, _)| wanted(name)).cloned().collect();
        let mut heads = Heads { broken, ..Heads::default() };
        for (name, reference) in references.iter().filter(|(name, _)| wanted(name)) {
            let is_tag = name.starts_with(TAGS);
            match peel(&repository, reference) {
                Ok(Some(commit)) => heads.heads.push(Head {
                    view: views[name.as_str()].clone(),
                    reference: name.clone(),
                    commit: commit.into(),
                    is_tag,
                }),
                Ok(None) if is_tag => heads.skipped_tags += 1,
                Ok(None) => heads.broken.push((name.clone(), "it names no commit".to_owned())),
                Err(error) => heads.broken.push((name.clone(), with_cause(&error))),
            }
        }
        if let (true, HeadState::Detached(id)) = (wants_head, head) {
            let (view, reference) = (HEAD.to_owned(), HEAD.to_owned());
            match read_commit(&repository, id) {
                Ok(commit) => heads.heads.push(Head { view, reference, commit: commit.into(), is_tag: false }),
                Err(error) => heads.broken.push((reference, with_cause(&error))),
            }
        }
        Ok(heads)
    }

    /// Returns those of the given views whose ref exists and names a commit, or cannot be read at present.
    ///
    /// A missing ref is looked up twice: while git packs refs, a listing can miss one that moves.
    ///
    /// # Errors
    ///
    /// If the refs cannot be listed.
    pub fn standing(&self, views: &[&str]) -> Result<FxHashSet<String>, GitError> {
        let mut standing = self.listed(views)?;
        if views.iter().any(|view| !standing.contains(*view)) {
            standing.extend(self.listed(views)?);
        }
        Ok(standing)
    }

    fn listed(&self, views: &[&str]) -> Result<FxHashSet<String>, GitError> {
        let repository = self.pool.get()?;
        let Listing { references, unreadable } = references(&repository)?;
        let all = references.iter().map(|(name, _)| name).chain(unreadable.iter().map(|(name, _)| name));
        let names = view_names(all.map(String::as_str));
        let mut standing: FxHashSet<String> =
            unreadable.iter().map(|(reference, _)| names[reference.as_str()].clone()).collect();
        for (reference, handle) in &references {
            let view = &names[reference.as_str()];
            if !views.contains(&view.as_str()) {
                continue;
            }
            match peel(&repository, handle) {
                // A tag that was moved to a tree or a blob names no commit.
                Ok(None) if reference.starts_with(TAGS) => {}
                Ok(_) | Err(_) => {
                    standing.insert(view.clone());
                }
            }
        }
        if matches!(head(&repository)?, HeadState::Detached(_)) {
            standing.insert(HEAD.to_owned());
        }
        Ok(standing)
    }

    /// Fails if a part of the repository that its refs depend on cannot be read.
    ///
    /// # Errors
    ///
    /// If the repository, its objects, or the folders of its refs are missing or cannot be read.
    pub fn check(&self) -> Result<(), GitError> {
        loose(&*self.pool.get()?).map(drop)
    }
}

/// Returns the commit of a ref, through other refs and tags; nothing if that is a tree or a blob.
pub(super) fn peel(repository: &Repository, reference: &Reference<'_>) -> Result<Option<RawCommit>, GitError> {
    let failed = |source| GitError::Read { what: String::from_utf8_lossy(reference.name_bytes()).into_owned(), source };
    let direct = reference.resolve().map_err(failed)?;
    let id = direct.target().ok_or_else(|| failed(git2::Error::from_str("it names nothing")))?;
    raw::peel(repository, commit_id(id))
}

fn with_cause(error: &GitError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn head(repository: &Repository) -> Result<HeadState, GitError> {
    let failed = |source| GitError::Read { what: HEAD.to_owned(), source };
    let head = repository.find_reference(HEAD).map_err(failed)?;
    let Some(target) = head.symbolic_target_bytes() else {
        let id = head.target().ok_or_else(|| failed(git2::Error::from_str("it names nothing")))?;
        return Ok(HeadState::Detached(commit_id(id)));
    };
    let target = String::from_utf8_lossy(target).into_owned();
    match head.resolve() {
        Ok(_) => Ok(HeadState::Branch(target)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(HeadState::Unborn(target)),
        // It exists and cannot be read, which the listing of refs reports.
        Err(_) => Ok(HeadState::Branch(target)),
    }
}

/// Every ref with its full name; names that are not UTF-8 are shown with replacement characters.
pub(super) struct Listing<'a> {
    pub(super) references: Vec<(String, Reference<'a>)>,
    /// Refs that exist and cannot be read, with the reason.
    unreadable: Vec<(String, String)>,
}

/// Lists the refs. A loose ref is read by its name: if it cannot be read, a listing would return an old packed value.
pub(super) fn references(repository: &Repository) -> Result<Listing<'_>, GitError> {
    let loose: FxHashSet<String> = loose(repository)?.into_iter().collect();
    let mut references = listed(repository)?;
    references.retain(|(name, _)| !loose.contains(name));
    let mut unreadable = Vec::new();
    for name in loose {
        match repository.find_reference(&name) {
            Ok(reference) => references.push((name, reference)),
            // Packed or deleted since the listing, or not the name of a ref.
            Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::InvalidSpec) => {}
            Err(error) => unreadable.push((name, error.message().to_owned())),
        }
    }
    unreadable.sort_unstable();
    Ok(Listing { references, unreadable })
}

/// Returns the names of the files below `refs/`, after a check of all that refs depend on.
fn loose(repository: &Repository) -> Result<Vec<String>, GitError> {
    let unseen = |path: &Path| {
        let path = path.to_owned();
        move |source| GitError::Unseen { path, source }
    };
    let (own, shared) = (repository.path(), repository.commondir());
    std::fs::metadata(own.join(HEAD)).map_err(unseen(&own.join(HEAD)))?;
    let objects = shared.join("objects");
    std::fs::read_dir(&objects).map_err(unseen(&objects))?;
    let packed = shared.join("packed-refs");
    match std::fs::File::open(&packed) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(unseen(&packed)(error)),
        _ => {}
    }
    let mut names = Vec::new();
    let mut folders = vec![(shared.join("refs"), "refs".to_owned())];
    while let Some((folder, name)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Git removes a folder with its last ref; `refs` itself it never removes.
            Err(error) if error.kind() == ErrorKind::NotFound && name != "refs" => continue,
            Err(error) => return Err(unseen(&folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(unseen(&folder))?;
            let Some(part) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let name = format!("{name}/{part}");
            let path = entry.path();
            let is_folder = match entry.file_type().map_err(unseen(&path))? {
                kind if kind.is_symlink() => match std::fs::metadata(&path) {
                    Ok(metadata) => metadata.is_dir(),
                    Err(error) if error.kind() == ErrorKind::NotFound => false,
                    Err(error) => return Err(unseen(&path)(error)),
                },
                kind => kind.is_dir(),
            };
            if is_folder {
                folders.push((path, name));
            } else if !part.ends_with(".lock") {
                names.push(name);
            }
        }
    }
    Ok(names)
}

/// Lists every ref that libgit2 can read.
fn listed(repository: &Repository) -> Result<Vec<(String, Reference<'_>)>, GitError> {
    let failed = |source| GitError::Read { what: "the refs".to_owned(), source };
    let mut references = Vec::new();
    let mut errors = 0;
    for reference in repository.references().map_err(failed)? {
        match reference {
            Ok(reference) => {
                errors = 0;
                references.push((String::from_utf8_lossy(reference.name_bytes()).into_owned(), reference));
            }
            Err(source) => {
                errors += 1;
                if errors > MAX_ERRORS {
                    return Err(failed(source));
                }
            }
        }
    }
    Ok(references)
}

/// Names the view of every ref, so that no two share a name.
pub(super) fn view_names<'a>(references: impl Iterator<Item = &'a str> + Clone) -> FxHashMap<&'a str, String> {
    let mut shorts: FxHashMap<&str, u32> = FxHashMap::default();
    for reference in references.clone() {
        *shorts.entry(short_name(reference)).or_default() += 1;
    }
    let name = |reference: &'a str| match short_name(reference) {
        short if shorts[short] == 1 => short,
        _ => reference.strip_prefix("refs/").unwrap_or(reference),
    };
    // A branch called `heads/X` may meet the longer name of another called `X`.
    let mut names: FxHashMap<&str, u32> = FxHashMap::default();
    for reference in references.clone() {
        *names.entry(name(reference)).or_default() += 1;
    }
    let unique = |reference: &'a str| if names[name(reference)] == 1 { name(reference) } else { reference };
    references.map(|reference| (reference, unique(reference).to_owned())).collect()
}

/// Returns a ref's name without the folder that says what kind it is.
pub(super) fn short_name(reference: &str) -> &str {
    [BRANCHES, TAGS, "refs/"].iter().find_map(|prefix| reference.strip_prefix(prefix)).unwrap_or(reference)
}
