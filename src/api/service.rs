//! A store open for questions, with the settings that answers depend on.
//!
//! In: a layout and the settings. Out: a [`Service`] that doors share, and `search`.

use super::ApiError;
use super::wire::{At, SearchAnswer};
use crate::config::Config;
use crate::engine::load_rules;
use crate::search::{Request, Searcher, Selected};
use crate::store::{Layout, SourceRecord};
use dataflows::rules::Rules;
use std::path::PathBuf;

/// Which source and view a request is about; without a name, every source and the default view of each.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Only this source.
    pub source: Option<String>,
    /// This view instead of the branch that HEAD names.
    pub view: Option<String>,
}

impl Place {
    /// Returns the source's name.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Returns the view's name.
    #[must_use]
    pub fn view(&self) -> Option<&str> {
        self.view.as_deref()
    }
}

/// A store open for questions.
///
/// Opening prepares the threads that searches run on.
pub struct Service {
    pub(super) searcher: Searcher,
    rules: Option<PathBuf>,
}

impl Service {
    /// Opens the store of a layout.
    ///
    /// # Errors
    /// Where there is no store, or nothing was published.
    pub fn open(layout: &Layout, config: &Config) -> Result<Self, ApiError> {
        crate::resources::start_pool();
        Ok(Self { searcher: Searcher::open(layout)?, rules: config.rules.clone() })
    }

    /// Returns what answers, for an evaluation.
    #[must_use]
    pub const fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    /// Answers a search.
    ///
    /// # Errors
    /// Where the request is out of bounds or names something unknown, or the store cannot be read.
    pub fn search(&self, request: &Request) -> Result<SearchAnswer, ApiError> {
        let answer = self.searcher.search(request)?;
        let at = answer.at.iter().map(|selected| At::new(selected, self.lag_ms(selected))).collect();
        Ok(SearchAnswer::new(&request.query, request.mode.as_str(), answer, at))
    }

    /// Returns the versions that a place and a revision mean, one a source.
    pub(super) fn select(&self, place: &Place, at: Option<&str>) -> Result<Vec<Selected>, ApiError> {
        Ok(self.searcher.revisions().select(self.searcher.reader(), place.source(), place.view(), at)?)
    }

    /// Returns the one version that a place and a revision mean.
    pub(super) fn one(&self, place: &Place, at: &str) -> Result<Selected, ApiError> {
        Ok(self.searcher.revisions().one(self.searcher.reader(), place.source(), place.view(), at)?)
    }

    /// Returns the row of a version's source.
    pub(super) fn source(&self, selected: &Selected) -> Option<&SourceRecord> {
        let sources = self.searcher.revisions().sources();
        sources.iter().find(|(id, _)| *id == selected.source).map(|(_, record)| record)
    }

    /// Reads the rules that documents are cleaned and cut by.
    pub(super) fn rules(&self) -> Result<Rules, ApiError> {
        Ok(load_rules(self.rules.as_deref())?)
    }

    /// Returns for how many milliseconds the source has had a commit that the version does not have; 0 for a version of the
    /// past, and where the repository cannot be asked.
    fn lag_ms(&self, selected: &Selected) -> u64 {
        if !selected.is_head {
            return 0;
        }
        let behind = || {
            let git = self.searcher.revisions().repository(self.source(selected)?)?;
            let head = git.resolve(selected.view.as_deref()?).ok().filter(|head| *head != selected.commit)?;
            let first = git.new_commits(selected.commit, head).ok()?.first()?.time;
            u64::try_from(jiff::Timestamp::now().as_millisecond() - first.saturating_mul(1000)).ok()
        };
        behind().unwrap_or(0)
    }
}
