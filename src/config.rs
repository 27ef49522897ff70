//! What a run is asked to do: settings with their defaults, from `tidemill.toml` and the command line.
//!
//! In: a file's text. Out: checked values. **Invariant:** every setting has a default, so no file is needed; a setting
//! that is not known is an error, since a misspelt one would be silently without effect.

use serde::Deserialize;
use std::path::{Path, PathBuf};

/// All settings of a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The sources that `track` follows where none is named on the command line.
    #[serde(rename = "source")]
    pub sources: Vec<SourceConfig>,
    /// Rules that go in front of the built-in ones: the path of a file in the form of `dataflows/pipelines/built-in.toml`.
    pub rules: Option<PathBuf>,
    /// Threads of the dataflow; one is best unless the first load is large.
    pub workers: Option<usize>,
    /// Threads on which contents are cleaned, cut and embedded; the number of processors by default.
    pub pool: Option<usize>,
    /// Whether the sources are all that is to be tracked, as in a file: what the store knows beside them is taken back.
    #[serde(skip)]
    pub is_complete: bool,
}

/// One source.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// Where it is: a path, or `dir:PATH` for a directory.
    pub path: String,
    /// What it is called; the last part of its path by default.
    pub name: Option<String>,
    /// Which refs of a repository are views; the branch that HEAD names by default.
    #[serde(default, rename = "ref")]
    pub refs: Vec<String>,
    /// Which past commits get snapshots.
    #[serde(default)]
    pub backfill: Option<Backfill>,
    /// Seconds between two looks at the source where no file event comes.
    #[serde(default)]
    pub poll_seconds: Option<f64>,
    /// Seconds between two fetches from the repository's remote; nothing is fetched without it.
    #[serde(default)]
    pub fetch_seconds: Option<f64>,
    /// Whether the uncommitted state of the repository's work tree is a view too.
    #[serde(default)]
    pub worktree: bool,
}

/// Which commits before a head get snapshots.
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

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no configuration.
    #[error("cannot read the configuration {}: {}", path.display(), one_line(&source.to_string()))]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        #[source]
        source: Box<toml::de::Error>,
    },
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Config {
    /// Reads the file at `path`; without one that was asked for, `tidemill.toml` if it is there, else the defaults.
    ///
    /// # Errors
    /// Where a file that was asked for is missing, or a file is no configuration.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let asked = path.unwrap_or_else(|| Path::new("tidemill.toml"));
        let text = match std::fs::read_to_string(asked) {
            Ok(text) => text,
            Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(ConfigError::Read { path: asked.to_owned(), source }),
        };
        let failed = |source| ConfigError::Parse { path: asked.to_owned(), source: Box::new(source) };
        Ok(Self { is_complete: true, ..toml::from_str(&text).map_err(failed)? })
    }
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
    fn short_digits_are_a_number_and_long_ones_a_hash() {
        assert_eq!("12".parse(), Ok(Backfill::Commits(12)));
        assert_eq!("1234567".parse(), Ok(Backfill::From("1234567".to_owned())));
        assert_eq!("v0.16".parse(), Ok(Backfill::From("v0.16".to_owned())));
    }
}
