//! The questions of the benches: some that a person would ask of an engine, and any number drawn from a repository.

use super::copies::head_files;
use std::path::Path;

/// Questions of people about a game engine.
pub(crate) const QUESTIONS: [&str; 20] = [
    "how to spawn a camera entity",
    "insert component into world",
    "system ordering before after",
    "render graph node",
    "asset loader async",
    "transform propagation hierarchy",
    "query filter with without changed",
    "shader material bind group",
    "window resize event",
    "animation clip blend",
    "ui layout flex node",
    "text font atlas",
    "mesh vertex attribute",
    "scene serialization reflect",
    "gamepad input axis",
    "commands despawn children",
    "light shadow cascade",
    "schedule run condition state",
    "audio playback sink",
    "World::spawn",
];

/// Questions that benches draw from the corpus, beside [`QUESTIONS`].
pub(crate) const DRAWN: usize = 80;

/// Returns [`QUESTIONS`] and up to `more` sentences of documentation, from files far from each other.
pub(crate) fn questions(repository: &Path, more: usize) -> Vec<String> {
    let files = head_files(repository);
    let is_sentence = |line: &&str| line.starts_with("/// ") && line.split_whitespace().count() > 4;
    let sentence = |bytes: &Vec<u8>| -> Option<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        Some(text.lines().map(str::trim).filter(is_sentence).nth(1)?[4..].to_owned())
    };
    let step = (files.len() / (4 * more.max(1))).max(1);
    let drawn = files.iter().step_by(step).filter_map(|(_, bytes)| sentence(bytes)).step_by(2).take(more);
    QUESTIONS.map(str::to_owned).into_iter().chain(drawn).collect()
}
