//! Cleans bytes to the text that is cut and searched.
//!
//! In: a content's bytes and its rule. Out: UTF-8 text with `\n` line ends, or the reason why there is none.
//!
//! **Invariant:** the result depends only on the bytes and on what the rule's cleaning fingerprint covers. It is total on any
//! bytes, in linear time and memory. The text holds no NUL and no byte order mark at its start. One cleaner per file; a change of
//! any cleaner's output increments `rules::version::CLEAN_VERSION`.

mod decode;
mod plain;

use crate::data::{Conversion, SkipReason};
use crate::rules::Rule;

/// Returns the cleaned text of a content.
///
/// # Errors
///
/// The reason why the content is no document: the rule excludes it, it has more bytes than the rule allows, or it is not text.
///
/// ```
/// use dataflows::{clean::clean, data::SkipReason, rules::Rules};
/// let rules = Rules::built_in();
/// let rule = rules.rule(rules.for_path(&"notes.txt".into()));
/// assert_eq!(clean(rule, b"one\r\ntwo\r\n").as_deref(), Ok("one\ntwo\n"));
/// assert_eq!(clean(rule, b"\x7fELF\x02\x01\x01\x00"), Err(SkipReason::Binary));
/// ```
pub fn clean(rule: &Rule, bytes: &[u8]) -> Result<String, SkipReason> {
    convert(rule, bytes).map(|(text, _)| text)
}

/// Returns the cleaned text of a content as [`clean`] does, and its encoding if that is not UTF-8.
///
/// # Errors
///
/// As [`clean`].
pub fn convert(rule: &Rule, bytes: &[u8]) -> Result<(String, Option<Conversion>), SkipReason> {
    if rule.excluded() {
        return Err(SkipReason::Excluded);
    }
    if bytes.len() as u64 > rule.max_bytes() {
        return Err(SkipReason::TooLarge);
    }
    decode::decode(bytes, rule.charset()).map(|(text, from)| (plain::clean(text), from))
}
