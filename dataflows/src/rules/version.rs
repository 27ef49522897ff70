//! The versions of everything that can change the output of cleaning or chunking.
//!
//! In: nothing. Out: constants that go into every fingerprint.
//!
//! **Invariant:** two builds that could clean or cut one text differently have different constants here. They are here, before
//! the code that they describe, because a rule's fingerprint must name a grammar that the rules cannot import. A test compares
//! the crates' versions with the lock file. A change of the output of `clean`, `code` or `chunk` needs a manual increment.

/// Counts the changes of the cleaners' output.
pub(crate) const CLEAN_VERSION: u32 = 2;

/// Counts the changes of chunk borders and names.
pub(crate) const CHUNK_VERSION: u32 = 2;

/// Counts the changes of the manifest parsers' output.
pub(crate) const MANIFEST_VERSION: u32 = 1;

/// Counts the changes of what `.editorconfig` files are read to say.
pub(crate) const EDITORCONFIG_VERSION: u32 = 1;

/// The crates that detect and decode encodings.
pub(crate) const DECODERS: [(&str, &str); 2] = [("chardetng", "1.0.0"), ("encoding_rs", "0.8.44")];

/// The crate that finds the headings.
pub(crate) const HEADINGS: (&str, &str) = ("pulldown-cmark", "0.13.6");

/// The crate that runs the grammars.
pub(crate) const PARSER: (&str, &str) = ("tree-sitter", "0.27.1");

/// The languages that can be cut by their syntax: our name for each, its grammar's crate, and that crate's version.
pub(crate) const GRAMMARS: [(&str, &str, &str); 4] = [
    ("rust", "tree-sitter-rust", "0.24.2"),
    ("c", "tree-sitter-c", "0.24.2"),
    ("cpp", "tree-sitter-cpp", "0.23.4"),
    ("python", "tree-sitter-python", "0.25.0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a change here, an updated grammar would serve chunks of the old one from the cache.
    #[test]
    fn the_lock_file_holds_the_versions_that_the_fingerprints_name() {
        let lock = include_str!("../../../Cargo.lock");
        let grammars = GRAMMARS.iter().map(|&(_, name, version)| (name, version));
        for (name, version) in DECODERS.into_iter().chain([HEADINGS, PARSER]).chain(grammars) {
            let named = format!("name = \"{name}\"\nversion = \"{version}\"");
            assert!(lock.contains(&named), "{name} is locked at another version than {version}");
        }
    }
}
