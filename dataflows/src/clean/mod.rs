//! Cleans bytes to the text that is cut and searched.
//!
//! In: a content's bytes, its rule, and the encoding that its tree gives it, if it gives one. Out: UTF-8 text with `\n` line ends, or the reason why there is none.
//!
//! **Invariant:** a function of (bytes, what the rule's cleaning fingerprint covers, charset of the tree) alone, total on any bytes, in time and
//! memory linear in them. Text that comes out holds no NUL and no byte order mark at its start. One cleaner a file;
//! a change of what any of them puts out counts `rules::version::CLEAN_VERSION` up.

mod decode;
mod plain;

use crate::data::{Charset, Conversion, Evidence, SkipReason};
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
    convert(rule, None, bytes).map(|(text, _)| text)
}

/// Returns the cleaned text of a content as [`clean`] does, and which encoding it had where that is not UTF-8; `charset` is the
/// encoding that its tree gives it, and counts where the rule gives none.
///
/// # Errors
///
/// As [`clean`].
pub fn convert(
    rule: &Rule,
    charset: Option<Charset>,
    bytes: &[u8],
) -> Result<(String, Option<Conversion>), SkipReason> {
    if rule.excluded() {
        return Err(SkipReason::Excluded);
    }
    if bytes.len() as u64 > rule.max_bytes() {
        return Err(SkipReason::TooLarge);
    }
    let by_rule = rule.charset().map(|charset| (charset, Evidence::Rule));
    let told = by_rule.or(charset.map(|charset| (charset, Evidence::Editor)));
    // UTF-8 is what is tried without a word.
    let told = told.filter(|(charset, _)| *charset != Charset::UTF_8);
    decode::decode(bytes, told.map(|(charset, by)| (charset.encoding(), by)))
        .map(|(text, from)| (plain::clean(text), from))
}
