//! Configurations: named sets of settings that a question is asked under.
//!
//! In: `NAME:key=value,key=value`, as in `deep:mode=vector,per-doc=5`. Out: a name, and a request to which a question is added.
//!
//! **Invariant:** what is not set has the default of `search`, so an ingredient is switched off by one setting; a setting of a request
//! that ranks differently gets its key in [`Configuration::set`] and nowhere else.

use super::ask::DEPTH;
use crate::search::{FusionMethod, Mode, Request};
use clap::ValueEnum;
use std::str::FromStr;

/// A named set of settings.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called.
    pub name: String,
    request: Request,
}

/// The keys of [`Configuration::set`], for people.
const KEYS: &str = "mode, fusion, per-doc, fold, exact";

impl Configuration {
    /// Returns the configuration that has the name of a mode, and is its default.
    #[must_use]
    pub fn of_mode(mode: Mode) -> Self {
        Self { name: mode.as_str().to_owned(), request: Request { mode, k: DEPTH, ..Request::new("") } }
    }

    /// Returns the request that asks a question.
    #[must_use]
    pub fn request(&self, query: &str) -> Request {
        Request { query: query.to_owned(), ..self.request.clone() }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = |expected: &str| format!("`{key}={value}`: expected {expected}");
        let switch = || match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(wrong("on or off")),
        };
        match key {
            "mode" => self.request.mode = Mode::from_str(value, false).map_err(|_| wrong("hybrid, bm25 or vector"))?,
            "fusion" => {
                self.request.fusion = FusionMethod::from_str(value, false).map_err(|_| wrong("rrf or linear"))?;
            }
            "per-doc" => {
                let number = value.parse().ok().filter(|number| *number > 0);
                self.request.per_document = number.ok_or_else(|| wrong("a number from 1"))?;
            }
            "fold" => self.request.fold = switch()?,
            "exact" => self.request.exact = switch()?,
            _ => return Err(format!("`{key}` is no setting; there are {KEYS}")),
        }
        Ok(())
    }
}

impl FromStr for Configuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("`{text}` is no configuration; write it as in `deep:mode=vector,per-doc=5`");
        let (name, settings) = text.split_once(':').ok_or_else(form)?;
        if name.is_empty() || name.chars().any(|sign| sign.is_whitespace() || sign == ':' || sign == '=') {
            return Err(form());
        }
        let mut configuration = Self { name: name.to_owned(), ..Self::of_mode(Mode::Hybrid) };
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').ok_or_else(form)?;
            configuration.set(key, value)?;
        }
        Ok(configuration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_mistakes_named() {
        let read: Configuration = "deep:mode=vector,per-doc=5,fold=on".parse().unwrap();
        let request = read.request("herons");
        assert_eq!(
            (read.name.as_str(), request.mode, request.per_document, request.fold),
            ("deep", Mode::Vector, 5, true)
        );
        assert_eq!((request.query.as_str(), request.k), ("herons", DEPTH));
        assert_eq!("plain:".parse::<Configuration>().unwrap().request("x").mode, Mode::Hybrid);
        let mistake = |text: &str| text.parse::<Configuration>().unwrap_err();
        assert_eq!(mistake("a:colour=blue"), format!("`colour` is no setting; there are {KEYS}"));
        assert_eq!(mistake("a:fold=maybe"), "`fold=maybe`: expected on or off");
        assert_eq!(mistake("a:per-doc=0"), "`per-doc=0`: expected a number from 1");
        for text in ["", "mode=bm25", ":mode=bm25", "a b:mode=bm25", "a:mode"] {
            assert!(mistake(text).contains("is no configuration"), "{text}: {}", mistake(text));
        }
    }
}
