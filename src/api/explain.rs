//! `explain`: how a document got, or did not get, into the index.
//!
//! In: a path as it was typed. Out: a line for each source in which it stands; where it stands in none, for each in which it
//! could.

use super::wire::ExplanationLine;
use super::{ApiError, Place, Service};
use crate::search::explain;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// What is to be explained.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// The document: from its source's root, from `folder`, or absolute.
    pub path: OsString,
    /// The folder that a relative path may count from.
    pub folder: PathBuf,
    /// As of this revision.
    pub at: Option<String>,
    /// In which source and view.
    pub place: Place,
}

impl Service {
    /// Explains a path.
    ///
    /// # Errors
    /// Where the revision is unknown, the path is in no source that was asked, or the store cannot be read.
    pub fn explain(&self, request: &ExplainRequest) -> Result<Vec<ExplanationLine>, ApiError> {
        let rules = Arc::new(self.rules()?);
        let selected = self.select(&request.place, request.at.as_deref())?;
        let mut explanations = Vec::new();
        for selected in &selected {
            explanations.extend(explain(&self.searcher, &rules, selected, &request.path, &request.folder)?);
        }
        if explanations.is_empty() {
            let located = selected.iter().filter_map(|selected| {
                let record = self.source(selected)?;
                Some(format!("{} ({})", record.name, String::from_utf8_lossy(&record.location)))
            });
            let sources = located.collect::<Vec<_>>().join(", ");
            return Err(ApiError::Elsewhere { path: request.path.to_string_lossy().into_owned(), sources });
        }
        // Several sources are asked, and the path is in one of them as a rule.
        if explanations.iter().any(|explanation| explanation.document.is_some()) {
            explanations.retain(|explanation| explanation.document.is_some());
        }
        Ok(explanations.into_iter().map(ExplanationLine::from).collect())
    }
}
