//! Converts a file's bytes as git does when it adds them to the repository.
//!
//! In: a path's attributes, the settings, and bytes of the work tree. Out: the bytes of the blob that `git add` would write.
//!
//! **Invariant:** line ends (`text`, `eol`, `core.autocrlf`), `ident` and `working-tree-encoding` are as in git. External filter
//! programs (`filter=lfs`) are not run, because a work tree is data: the file on disk is used as it is. Bytes that git could not
//! convert are used unchanged.

use crate::watch::encoding::DiskEncoding;
use git2::{AttrCheckFlags, AttrValue, Repository};
use gix_filter::eol::convert_to_git::Options;
use gix_filter::eol::{AttributesDigest, AutoCrlf, Configuration, Mode, convert_to_git};
use gix_filter::ident;
use std::path::Path;

/// The conversion settings of a repository.
pub(super) struct Conversion<'a> {
    repository: &'a Repository,
    settings: Configuration,
}

/// The conversion of one path.
pub(super) struct Steps {
    encoding: Option<DiskEncoding>,
    line_ends: AttributesDigest,
    ident: bool,
    /// Whether an external program would have to run.
    pub(super) has_driver: bool,
}

impl<'a> Conversion<'a> {
    /// Reads the settings of a repository.
    pub(super) fn of(repository: &'a Repository) -> Self {
        let text = |key: &str| repository.config().and_then(|config| config.get_string(key)).unwrap_or_default();
        let auto_crlf = match text("core.autocrlf").to_ascii_lowercase().as_str() {
            "input" => AutoCrlf::Input,
            value if git2::Config::parse_bool(value).unwrap_or(false) => AutoCrlf::Enabled,
            _ => AutoCrlf::Disabled,
        };
        let eol = match text("core.eol").as_str() {
            "crlf" => Some(Mode::CrLf),
            "lf" => Some(Mode::Lf),
            _ => None,
        };
        Self { repository, settings: Configuration { auto_crlf, eol } }
    }

    /// Returns the conversion of a path.
    pub(super) fn steps(&self, path: &Path) -> Steps {
        let value = |name: &str| {
            let found = self.repository.get_attr_bytes(path, name, AttrCheckFlags::FILE_THEN_INDEX);
            Attribute::of(AttrValue::from_bytes(found.ok().flatten()))
        };
        Steps {
            encoding: match value("working-tree-encoding") {
                Attribute::Text(label) => DiskEncoding::of(&label),
                _ => None,
            },
            line_ends: line_ends([value("text"), value("crlf")], &value("eol"), self.settings),
            ident: value("ident") == Attribute::Set,
            has_driver: matches!(value("filter"), Attribute::Text(_)),
        }
    }
}

impl Steps {
    /// Returns what git would store for `bytes`, if it differs; `stored` returns the bytes that are stored now.
    pub(super) fn apply(&self, bytes: &[u8], stored: &dyn Fn() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut current: Option<Vec<u8>> = None;
        let mut buffer = Vec::new();
        if let Some(encoding) = self.encoding {
            current = Some(encoding.to_git(bytes)?);
        }
        let options = Options { round_trip_check: None, config: Configuration::default() };
        let mut in_index = |into: &mut Vec<u8>| {
            Ok(stored().map(|blob| {
                into.clear();
                into.extend_from_slice(&blob);
            }))
        };
        let from = current.as_deref().unwrap_or(bytes);
        if convert_to_git(from, self.line_ends, &mut buffer, &mut in_index, options).is_ok_and(|changed| changed) {
            current = Some(std::mem::take(&mut buffer));
        }
        if self.ident && ident::undo(current.as_deref().unwrap_or(bytes), &mut buffer).is_ok_and(|changed| changed) {
            current = Some(buffer);
        }
        current.filter(|converted| converted != bytes)
    }
}

/// An attribute's value.
#[derive(Clone, PartialEq, Eq)]
enum Attribute {
    Set,
    Unset,
    Text(String),
    None,
}

impl Attribute {
    fn of(value: AttrValue<'_>) -> Self {
        match value {
            AttrValue::True => Self::Set,
            AttrValue::False => Self::Unset,
            AttrValue::String(text) => Self::Text(text.to_owned()),
            AttrValue::Bytes(_) | AttrValue::Unspecified => Self::None,
        }
    }

    fn is(&self, text: &str) -> bool {
        matches!(self, Self::Text(own) if own == text)
    }
}

/// Joins the attributes of line ends, the older name `crlf` behind `text` (git's `convert.c`, `convert_attrs`).
fn line_ends(names: [Attribute; 2], eol: &Attribute, settings: Configuration) -> AttributesDigest {
    let of_name = |name: &Attribute| match name {
        Attribute::Set => Some(AttributesDigest::Text),
        Attribute::Unset => Some(AttributesDigest::Binary),
        name if name.is("input") => Some(AttributesDigest::TextInput),
        name if name.is("auto") => Some(AttributesDigest::TextAuto),
        _ => None,
    };
    let found = names.iter().find_map(of_name);
    match (found, eol) {
        (Some(AttributesDigest::Binary), _) => AttributesDigest::Binary,
        (Some(AttributesDigest::TextAuto), eol) if eol.is("lf") => AttributesDigest::TextAutoInput,
        (Some(AttributesDigest::TextAuto), eol) if eol.is("crlf") => AttributesDigest::TextAutoCrlf,
        (_, eol) if eol.is("lf") => AttributesDigest::TextInput,
        (_, eol) if eol.is("crlf") => AttributesDigest::TextCrlf,
        (Some(found), _) => found,
        (None, _) => settings.auto_crlf.into(),
    }
}
