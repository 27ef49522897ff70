//! The settings of a run with their defaults, from `tidemill.toml` and the command line.
//!
//! In: a file's text. Out: checked values. **Invariant:** every setting has a default, so no file is needed. An unknown setting
//! is an error, because a misspelt one would be silently ignored. A relative path in a file counts from the folder of that file,
//! wherever the command is run.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All settings of a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The sources of `track`, if none is named on the command line.
    #[serde(rename = "source")]
    pub sources: Vec<SourceConfig>,
    /// The path of a rule file, whose rules come before the built-in ones; in the form of `dataflows/pipelines/built-in.toml`.
    pub rules: Option<PathBuf>,
    /// Threads of the dataflow; one is best unless the first load is large.
    pub workers: Option<usize>,
    /// Threads on which contents are cleaned, cut and embedded; the number of processors by default.
    pub pool: Option<usize>,
    /// The snapshots to keep, of sources without their own setting.
    pub retention: Retention,
    /// Whether the sources are all that is to be tracked, as in a file: other sources of the store are removed from the graph.
    #[serde(skip)]
    pub is_complete: bool,
}

/// One source.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// Where it is: a path, or `dir:PATH` for a directory.
    pub path: String,
    /// Its name; the last part of its path by default.
    pub name: Option<String>,
    /// Its old path, if it was moved since it was last tracked.
    #[serde(default)]
    pub moved_from: Option<PathBuf>,
    /// The refs of a repository that are views; the branch that HEAD names by default.
    #[serde(default, rename = "ref")]
    pub refs: Vec<String>,
    /// The past commits that get snapshots.
    #[serde(default)]
    pub backfill: Option<Backfill>,
    /// Seconds between two looks at the source if no file event comes.
    #[serde(default)]
    pub poll_seconds: Option<f64>,
    /// Seconds between two fetches from the repository's remote; nothing is fetched without it.
    #[serde(default)]
    pub fetch_seconds: Option<f64>,
    /// Whether the uncommitted state of the repository's work tree is a view too.
    #[serde(default)]
    pub worktree: bool,
    /// Whether `backfill` makes dropped snapshots again: only if it was given on the command line, not in a file, which applies
    /// to every start.
    #[serde(skip)]
    pub asks_again: bool,
    /// Whether the first look counts files as deleted that may be gone with a disk.
    #[serde(skip)]
    pub accepts_loss: bool,
    /// The snapshots to keep, in place of the settings for all sources.
    #[serde(default)]
    pub retention: Option<Retention>,
}

/// The snapshots to keep. A snapshot stays if any of these keeps it; if none is set, all stay. The target of a view always stays.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RetentionKeys")]
pub struct Retention {
    /// The rule of every view without its own.
    pub keep: Keep,
    /// Rules of the views whose name matches a pattern; of several matching patterns the first in alphabetical order counts.
    pub views: BTreeMap<String, Keep>,
    /// Whether snapshots of commits with a tag of the repository stay.
    pub tags: bool,
    /// Saved and uncommitted states, of a work tree or a directory, stay for so many hours, in place of the rules of views.
    pub saves_hours: Option<i64>,
    /// Whether a tracker drops and collects at its start, before it looks at its sources.
    pub at_start: bool,
    /// A tracker drops and collects, beside publishing, this long after the last collection.
    pub every: Option<Duration>,
}

/// The same as parsed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionKeys {
    newest: Option<usize>,
    days: Option<u32>,
    daily: Option<u32>,
    weekly: Option<u32>,
    #[serde(default)]
    views: BTreeMap<String, Keep>,
    tags: Option<bool>,
    saves_hours: Option<i64>,
    #[serde(default)]
    at_start: bool,
    every: Option<String>,
}

impl TryFrom<RetentionKeys> for Retention {
    type Error = String;

    fn try_from(keys: RetentionKeys) -> Result<Self, String> {
        let RetentionKeys { newest, days, daily, weekly, views, tags, saves_hours, at_start, every } = keys;
        let (keep, tags) = (Keep { newest, days, daily, weekly }, tags.unwrap_or(true));
        let every = every.as_deref().map(parse_every).transpose()?;
        Ok(Self { keep, views, tags, saves_hours, at_start, every })
    }
}

/// Parses an interval: a number of minutes, hours, days or weeks.
fn parse_every(text: &str) -> Result<Duration, String> {
    let expected =
        || format!("every = \"{text}\" is no length of time; write it as in \"30m\", \"6h\", \"1d\" or \"2w\"");
    let unit = text.chars().next_back().ok_or_else(expected)?;
    let seconds = match unit {
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        'w' => 7 * 24 * 3600,
        _ => return Err(expected()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| expected())?;
    if number == 0 { Err(expected()) } else { Ok(Duration::from_secs(u64::from(number) * seconds)) }
}

impl Default for Retention {
    fn default() -> Self {
        let (keep, views) = (Keep::default(), BTreeMap::new());
        Self { keep, views, tags: true, saves_hours: None, at_start: false, every: None }
    }
}

impl Retention {
    /// Returns whether some snapshots may be dropped.
    #[must_use]
    pub fn limits_anything(&self) -> bool {
        self.keep.is_limited() || !self.views.is_empty() || self.saves_hours.is_some()
    }
}

/// The kept snapshots on the line of a view: its commit and the first parents before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// So many of the newest, including the head.
    pub newest: Option<usize>,
    /// All of the last so many days. It also keeps commits that no view reaches any more.
    pub days: Option<u32>,
    /// Then the last of each day (UTC) for so many days.
    pub daily: Option<u32>,
    /// Then the last of each week (from Monday, UTC) for so many weeks.
    pub weekly: Option<u32>,
}

impl Keep {
    /// Returns whether anything is set; otherwise all stay.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.newest.is_some() || self.days.is_some() || self.daily.is_some() || self.weekly.is_some()
    }
}

/// The commits before a head that get snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub enum Backfill {
    /// This many first-parent commits before the head.
    Commits(usize),
    /// From this revision on.
    From(String),
    /// Every first-parent commit.
    All,
}

impl std::str::FromStr for Backfill {
    type Err = std::convert::Infallible;

    /// All digits and under seven characters is a number, not a hash.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            _ if text == "all" => Self::All,
            Ok(number) if text.len() < 7 => Self::Commits(number),
            _ => Self::From(text.to_owned()),
        })
    }
}

impl TryFrom<toml::Value> for Backfill {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::Integer(number) => usize::try_from(number)
                .map(Self::Commits)
                .map_err(|_| "backfill: a number of commits is not negative".to_owned()),
            toml::Value::String(text) => text.parse().map_err(|_| String::new()),
            _ => Err("backfill: expected a number, a revision or \"all\"".to_owned()),
        }
    }
}

/// The error in the configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file cannot be parsed.
    #[error("cannot read the configuration {}: {}", path.display(), one_line(&source.to_string()))]
    Parse {
        /// The file.
        path: PathBuf,
        /// The position and the error.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The rules that the file names cannot be read.
    #[error("cannot read the rules {}, which {}{} names; give a file that is there, or leave `rules` out", path.display(), config.display(), at_line(line))]
    Rules {
        /// The rules.
        path: PathBuf,
        /// The configuration.
        config: PathBuf,
        /// The line that names them.
        line: Option<usize>,
        /// The system's error.
        source: std::io::Error,
    },
}

fn at_line(line: &Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Config {
    /// Returns whether a tracker drops and collects at its start.
    #[must_use]
    pub fn collects_at_start(&self) -> bool {
        self.retentions().any(|retention| retention.at_start)
    }

    /// Returns how long after a collection a tracker collects again, if it does so by itself: one collection covers all sources.
    #[must_use]
    pub fn collects_every(&self) -> Option<Duration> {
        self.retentions().filter_map(|retention| retention.every).min()
    }

    fn retentions(&self) -> impl Iterator<Item = &Retention> {
        let own = self.sources.iter().filter_map(|source| source.retention.as_ref());
        std::iter::once(&self.retention).chain(own)
    }

    /// Reads the file at `path`; without a path, `tidemill.toml` if it exists, else the defaults.
    ///
    /// Relative paths count from the file's folder.
    ///
    /// # Errors
    /// If a named file is missing, a file cannot be parsed, or the rules that it names cannot be read.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let asked = path.unwrap_or_else(|| Path::new("tidemill.toml"));
        let text = match std::fs::read_to_string(asked) {
            Ok(text) => text,
            Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(ConfigError::Read { path: asked.to_owned(), source }),
        };
        let failed = |source| ConfigError::Parse { path: asked.to_owned(), source: Box::new(source) };
        let mut config = Self { is_complete: true, ..toml::from_str(&text).map_err(failed)? };
        config.count_from(asked.parent().unwrap_or(Path::new("")));
        if let Some(rules) = &config.rules
            && let Err(source) = std::fs::File::open(rules)
        {
            let names_rules = |line: &str| {
                line.trim_start().strip_prefix("rules").is_some_and(|rest| rest.trim_start().starts_with('='))
            };
            let line = text.lines().position(names_rules).map(|line| line + 1);
            return Err(ConfigError::Rules { path: rules.clone(), config: asked.to_owned(), line, source });
        }
        Ok(config)
    }

    /// Makes relative paths count from a folder.
    fn count_from(&mut self, folder: &Path) {
        if let Some(rules) = &mut self.rules {
            *rules = folder.join(&rules);
        }
        for source in &mut self.sources {
            let (kind, path) = match source.path.strip_prefix("dir:") {
                Some(path) => ("dir:", path),
                None => ("", source.path.as_str()),
            };
            source.path = format!("{kind}{}", at(folder, path));
        }
    }
}

/// Returns a path that counts from a folder; the folder's bytes are kept as far as text can express them.
fn at(folder: &Path, path: &str) -> String {
    if folder.as_os_str().is_empty() { path.to_owned() } else { folder.join(path).to_string_lossy().into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_says_what_to_track() {
        let config: Config = toml::from_str(
            "pool = 2\n[[source]]\npath = \"engine\"\nref = [\"main\", \"v*\"]\nbackfill = 100\n[[source]]\npath = \"dir:docs\"\nbackfill = \"all\"\n",
        )
        .unwrap();
        assert_eq!(config.pool, Some(2));
        assert_eq!(config.sources[0].backfill, Some(Backfill::Commits(100)));
        assert_eq!(config.sources[1].backfill, Some(Backfill::All));
    }

    #[test]
    fn a_misspelt_setting_is_an_error() {
        assert!(toml::from_str::<Config>("worker = 2").is_err());
        assert!(toml::from_str::<Config>("[[source]]\npath = \"x\"\nrefs = []").is_err());
    }

    #[test]
    fn retention_keeps_everything_until_it_is_told_what_to_keep() {
        assert!(!Config::default().retention.limits_anything());
        let config: Config = toml::from_str(
            "[retention]\nnewest = 500\ndaily = 90\nviews = { \"release-*\" = { weekly = 520 } }\n[[source]]\npath = \"dir:x\"\nretention = { saves_hours = 24, tags = false }\n",
        )
        .unwrap();
        let (all, own) = (&config.retention, config.sources[0].retention.as_ref().unwrap());
        assert_eq!(all.keep, Keep { newest: Some(500), daily: Some(90), ..Keep::default() });
        assert_eq!(all.views["release-*"].weekly, Some(520));
        assert_eq!((all.tags, all.saves_hours), (true, None));
        assert_eq!((own.tags, own.saves_hours, own.keep.is_limited()), (false, Some(24), false));
        assert!(toml::from_str::<Config>("[retention]\nnewst = 1").is_err());
        assert!(toml::from_str::<Config>("[retention.views.main]\ntags = true").is_err());
    }

    #[test]
    fn collections_come_as_often_as_the_most_impatient_says() {
        let every = |text: &str| toml::from_str::<Config>(text).map(|config| config.collects_every());
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
        assert_eq!(every("").unwrap(), None);
        assert_eq!(every("[retention]\nevery = \"2w\"").unwrap(), hours(14 * 24));
        let two = "[retention]\nevery = \"1d\"\n[[source]]\npath = \"x\"\nretention = { every = \"6h\" }";
        assert_eq!(every(two).unwrap(), hours(6));
        for wrong in ["0d", "d", "1", "", "1.5h", "-1h", "1y", "99999999999d", "1\u{e9}"] {
            let error = every(&format!("[retention]\nevery = \"{wrong}\"")).unwrap_err().to_string();
            assert!(error.contains("is no length of time") && error.contains("6h"), "{wrong}: {error}");
        }
    }

    #[test]
    fn relative_paths_count_from_the_folder_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("conf/t.toml");
        std::fs::create_dir(folder.path().join("conf")).unwrap();
        let text = "pool = 1\nrules = \"r.toml\"\n[[source]]\npath = \"../ok\"\n[[source]]\npath = \"dir:docs\"\n[[source]]\npath = \"/abs\"\n";
        std::fs::write(&file, text).unwrap();
        let error = Config::load(Some(&file)).unwrap_err().to_string();
        let rules = folder.path().join("conf/r.toml");
        assert_eq!(
            error,
            format!(
                "cannot read the rules {}, which {}, line 2 names; give a file that is there, or leave `rules` out",
                rules.display(),
                file.display()
            )
        );
        std::fs::write(&rules, "").unwrap();
        let config = Config::load(Some(&file)).unwrap();
        assert_eq!(config.rules.as_deref(), Some(rules.as_path()));
        let conf = folder.path().join("conf");
        let paths: Vec<&str> = config.sources.iter().map(|source| source.path.as_str()).collect();
        let expected = [format!("{}/../ok", conf.display()), format!("dir:{}/docs", conf.display()), "/abs".to_owned()];
        assert_eq!(paths, expected);
    }

    #[test]
    fn short_digits_are_a_number_and_long_ones_a_hash() {
        assert_eq!("12".parse(), Ok(Backfill::Commits(12)));
        assert_eq!("1234567".parse(), Ok(Backfill::From("1234567".to_owned())));
        assert_eq!("v0.16".parse(), Ok(Backfill::From("v0.16".to_owned())));
    }
}
