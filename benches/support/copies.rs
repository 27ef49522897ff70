//! A corpus of any size from a real one: the files of its head are repeated, each copy with other words.
//!
//! In: a repository, a number of entries, a seed. Out: a bare repository whose head holds at least as many, and later commits
//! that each move some twelve of them.
//!
//! Words (camel humps, or parts of a name between underscores) are changed in the same way all over a copy: a quarter of them is
//! swapped for other words of the corpus with similar frequency, a seventh gets an extra syllable. So texts, terms and vectors
//! differ between copies, while frequencies, lengths and the neighbourhood of vectors stay those of real code. Copy 0 is the
//! unchanged corpus.
//!
//! **Invariant:** every byte, and so every commit id, follows from the head of the repository, the size and the seed.

use super::git;
use super::import::Import;
use dataflows::chunk::chunk;
use dataflows::clean::clean;
use dataflows::rules::Rules;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The seed of the benches: it determines every changed word.
pub(crate) const SEED: u64 = 1;
/// How often every entry is rewritten in a corpus with ten dead entries for each live one.
pub(crate) const DEATHS: u64 = 10;
/// Shortest word that is changed, in letters.
const MIN_LETTERS: usize = 4;
/// Percentages of words that are swapped, and that get a syllable.
const SWAPPED: u64 = 25;
const LENGTHENED: u64 = 15;
/// Words are swapped among so many neighbours in the order of frequency.
const BLOCK: usize = 16;
/// Larger files are no documents under the built-in rules.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Number of functions that a commit changes, and of one file.
const FUNCTIONS: usize = 12;
const FUNCTIONS_A_FILE: usize = 3;

/// Keywords: a copy without them would be no program, and would be cut into other chunks.
const KEYWORDS: &str = "abstract alignas async auto await bool boolean break case catch char class const constexpr \
    continue crate default defer delete dependencies derive double elif else enum except explicit export extern false \
    features final finally float fn for friend from function global impl import include inline int interface lambda let \
    long loop match members mod module move mut namespace none noexcept null operator package pass private protected pub \
    public raise register return self short signed sizeof static str string struct super switch template this throw true \
    try type typedef typename union unsafe unsigned use using vertex virtual void volatile where while with workspace yield";

/// One file of the corpus.
struct File {
    path: String,
    text: String,
    /// The number of its entries.
    entries: usize,
}

/// The files of a real repository, and the words in them.
pub(crate) struct Corpus {
    files: Vec<File>,
    /// The words that may be changed, the most frequent first.
    words: Vec<String>,
    seed: u64,
}

impl Corpus {
    /// Reads the documents of a repository's head.
    pub(crate) fn read(repository: &Path, seed: u64) -> Self {
        let rules = Rules::built_in();
        let mut files = Vec::new();
        for (path, bytes) in head_files(repository) {
            let rule = rules.rule(rules.for_path(&path.as_str().into()));
            let Ok(text) = String::from_utf8(bytes) else { continue };
            if text.len() > MAX_FILE_BYTES || text.contains('\0') {
                continue;
            }
            let entries = clean(rule, text.as_bytes()).map_or(0, |cleaned| chunk(rule, &cleaned).len());
            files.push(File { path, text, entries });
        }
        // A partial last copy should hold files of all kinds.
        files.sort_by_key(|file| number(seed, &[b"order", file.path.as_bytes()]));
        let keywords: HashSet<&str> = KEYWORDS.split_whitespace().collect();
        let mut counts: HashMap<String, u64> = HashMap::new();
        for file in &files {
            for_each_word(&file.text, |word| {
                let word = word.to_ascii_lowercase();
                if word.len() >= MIN_LETTERS && !keywords.contains(word.as_str()) {
                    *counts.entry(word).or_default() += 1;
                }
            });
        }
        let mut words: Vec<(String, u64)> = counts.into_iter().collect();
        words.sort_by(|(left, one), (right, other)| other.cmp(one).then_with(|| left.cmp(right)));
        Self { files, words: words.into_iter().map(|(word, _)| word).collect(), seed }
    }

    /// Returns how many entries one copy makes.
    pub(crate) fn entries(&self) -> usize {
        self.files.iter().map(|file| file.entries).sum()
    }

    /// Creates a bare repository whose head holds at least `entries` entries, in one commit.
    pub(crate) fn replicate(&self, entries: usize, repository: &Path) {
        let mut import = Import::begin(repository);
        import.commit("copies");
        let mut made = 0;
        for copy in 0.. {
            if made >= entries {
                break;
            }
            let salt = self.salt(copy);
            for file in &self.files {
                if made >= entries {
                    break;
                }
                import.file(&format!("copy-{copy:02}/{}", file.path), &salt.apply(&file.text));
                made += file.entries;
            }
        }
        import.end();
    }

    /// Creates a bare repository of at least `entries` entries that are rewritten repeatedly: each of `4 * times` further commits
    /// changes the words of a quarter of the files.
    pub(crate) fn rewrite(&self, entries: usize, times: u64, repository: &Path) {
        let mut held = 0;
        let upto = self.files.iter().position(|file| {
            held += file.entries;
            held > entries
        });
        let files = &self.files[..upto.unwrap_or(self.files.len())];
        let mut import = Import::begin(repository);
        for commit in 0..=4 * times {
            import.commit(&format!("words {commit}"));
            let salt = self.salt(commit);
            for (_, file) in (0..).zip(files).filter(|(place, _)| commit == 0 || place % 4 == commit % 4) {
                import.file(&file.path, &salt.apply(&file.text));
            }
        }
        import.end();
    }

    fn salt(&self, copy: u64) -> Salt {
        let mut words = HashMap::new();
        if copy == 0 {
            return Salt(words);
        }
        let share = |word: &str| number(self.seed, &[b"share", &copy.to_le_bytes(), word.as_bytes()]);
        for block in self.words.chunks(BLOCK) {
            let swapped: Vec<&String> = block.iter().filter(|word| share(word) % 100 < SWAPPED).collect();
            for (place, word) in swapped.iter().enumerate() {
                words.insert((*word).clone(), swapped[(place + 1) % swapped.len()].clone());
            }
            for word in block.iter().filter(|word| (SWAPPED..SWAPPED + LENGTHENED).contains(&(share(word) % 100))) {
                words.insert(word.clone(), format!("{word}{}", syllable(share(word) / 100)));
            }
        }
        Salt(words)
    }
}

/// The replacement words of one copy.
struct Salt(HashMap<String, String>);

impl Salt {
    fn apply(&self, text: &str) -> String {
        let mut salted = String::with_capacity(text.len() + text.len() / 32);
        let mut copied = 0;
        for_each_word(text, |word| {
            let Some(other) = self.0.get(&word.to_ascii_lowercase()) else { return };
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            salted.push_str(&text[copied..start]);
            copied = start + word.len();
            let capitals = word.bytes().filter(u8::is_ascii_uppercase).count();
            if capitals > 1 {
                salted.push_str(&other.to_ascii_uppercase());
            } else if capitals == 1 {
                salted.push_str(&other[..1].to_ascii_uppercase());
                salted.push_str(&other[1..]);
            } else {
                salted.push_str(other);
            }
        });
        salted.push_str(&text[copied..]);
        salted
    }
}

/// Calls `visit` with each run of letters, split where lower case turns upper and before the last capital of a run.
fn for_each_word<'a>(text: &'a str, mut visit: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let upper = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_uppercase);
    let lower = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
    let mut start = 0;
    while start < bytes.len() {
        let mut end = start;
        while upper(end) {
            end += 1;
        }
        if end - start > 1 && lower(end) {
            end -= 1;
        } else {
            while lower(end) {
                end += 1;
            }
        }
        if end > start {
            visit(&text[start..end]);
        }
        start = end.max(start + 1);
    }
}

/// Adds commits to a repository's `main`, each of which changes some twelve functions of four files, on a branch `arriving` that
/// no tracker has seen; returns them, oldest first.
pub(crate) fn small_commits(repository: &Path, number_of_commits: usize) -> Vec<String> {
    let before = git(repository, &["rev-list", "--count", "--first-parent", "main"]);
    let before: u64 = before.parse().expect("git counts");
    let listed = git(repository, &["ls-tree", "-r", "--name-only", "main"]);
    let paths: Vec<&str> = listed.lines().filter(|path| path.ends_with(".rs")).collect();
    let files = head_reader(repository);
    let mut changed: HashMap<&str, String> = HashMap::new();
    let mut import = Import::onto(repository, "main", "arriving");
    for commit in before..before + number_of_commits as u64 {
        import.commit(&format!("small {commit}"));
        let mut left = FUNCTIONS;
        for attempt in 0_u64..200 {
            let place = number(commit, &[b"place", &attempt.to_le_bytes()]) as usize % paths.len();
            let text = changed.remove(paths[place]).unwrap_or_else(|| files(paths[place]));
            let (text, functions) = touch(&text, left.min(FUNCTIONS_A_FILE), commit);
            left -= functions;
            if functions > 0 {
                import.file(paths[place], &text);
            }
            changed.insert(paths[place], text);
            if left == 0 {
                break;
            }
        }
    }
    import.end();
    let made = git(repository, &["rev-list", "--first-parent", "--reverse", "main..arriving"]);
    made.lines().map(str::to_owned).collect()
}

/// Writes a comment into up to `limit` functions; returns the text and how many there were.
fn touch(text: &str, limit: usize, commit: u64) -> (String, usize) {
    let mut touched = 0;
    let mut written = String::with_capacity(text.len() + 256);
    let mut since = 20;
    for line in text.split_inclusive('\n') {
        written.push_str(line);
        since += 1;
        let begins = line.trim_start();
        let is_function = (begins.starts_with("fn ") || begins.starts_with("pub fn ")) && begins.ends_with("{\n");
        // Adjacent functions may share a chunk.
        if is_function && since > 20 && touched < limit {
            let syllables: String = (0..4).map(|part| syllable(number(commit, &[line.as_bytes(), &[part]]))).collect();
            written.push_str(&format!("    // The tide of {commit} turns {syllables}.\n"));
            touched += 1;
            since = 0;
        }
    }
    (written, touched)
}

fn syllable(number: u64) -> String {
    let (consonants, vowels) = (b"bdfgklmnprstvz", b"aeiou");
    let letter = |letters: &[u8], number: u64| char::from(letters[(number % letters.len() as u64) as usize]);
    [letter(consonants, number), letter(vowels, number / 64)].iter().collect()
}

/// Returns a number that follows from a seed and some bytes.
fn number(seed: u64, parts: &[&[u8]]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    for part in parts {
        hasher.update(part);
    }
    let bytes = *hasher.finalize().as_bytes();
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes are eight bytes"))
}

/// Returns every regular file of the head that the repository has, with its bytes.
pub(super) fn head_files(repository: &Path) -> Vec<(String, Vec<u8>)> {
    let repository = git2::Repository::open(repository).expect("the repository can be opened");
    let tree = repository.head().and_then(|head| head.peel_to_tree()).expect("the repository has a head");
    let mut files = Vec::new();
    tree.walk(git2::TreeWalkMode::PreOrder, |folder, entry| {
        if let (0o100_644 | 0o100_755, Ok(name)) = (entry.filemode(), std::str::from_utf8(entry.name_bytes())) {
            // A partial clone lacks some.
            if let Ok(blob) = repository.find_blob(entry.id()) {
                files.push((format!("{folder}{name}"), blob.content().to_vec()));
            }
        }
        git2::TreeWalkResult::Ok
    })
    .expect("the repository is whole");
    files
}

/// Returns a function that reads one file of `main`.
fn head_reader(repository: &Path) -> impl Fn(&str) -> String {
    let repository = git2::Repository::open(repository).expect("the repository can be opened");
    move |path| {
        let commit = repository.find_reference("refs/heads/main").and_then(|main| main.peel_to_tree());
        let entry = commit.and_then(|tree| tree.get_path(Path::new(path))).expect("the path was just listed");
        let blob = repository.find_blob(entry.id()).expect("the repository is whole");
        String::from_utf8_lossy(blob.content()).into_owned()
    }
}
