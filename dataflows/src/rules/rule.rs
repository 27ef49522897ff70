//! One rule: the treatment of the files that it matches.
//!
//! In: the checked settings of one `[[rule]]`. Out: the settings for `clean` and `chunk`, and the identities of their inputs.
//!
//! **Invariant:** [`Rule::document_id`] covers every setting and version that can change the result of cleaning, and
//! [`Rule::chunking_id`] every one that can change the cutting, and neither covers more. So rules with the same cleaning share
//! their documents, and a new label or pattern computes nothing again.

use super::version::{CHUNK_VERSION, CLEAN_VERSION, DECODERS, GRAMMARS, HEADINGS, PARSER};
use crate::data::{Charset, ChunkKind, ChunkingId, ContentId, DocumentId, DocumentPath, Fingerprint, Hasher, TextHash};

/// How a text is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cutting {
    /// At the items of the language's grammar.
    Syntax,
    /// At Markdown headings.
    Heading,
    /// At paragraphs and sentences.
    Paragraph,
    /// At blank lines and by indentation.
    Line,
}

impl Cutting {
    /// Returns its name in a rule.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Heading => "heading",
            Self::Paragraph => "paragraph",
            Self::Line => "line",
        }
    }

    /// Returns the cutting with this name.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Syntax, Self::Heading, Self::Paragraph, Self::Line].into_iter().find(|cutting| cutting.as_str() == word)
    }

    /// Returns the default number of bytes up to which a piece stays whole.
    ///
    /// A larger piece is cut into parts of about half: 800 bytes for documents, 1,000 for text, and 1,200 for code, whose items
    /// are worth keeping together.
    pub(crate) const fn default_whole_up_to(self) -> usize {
        match self {
            Self::Syntax | Self::Line => 2_400,
            Self::Heading => 1_600,
            Self::Paragraph => 2_000,
        }
    }
}

/// The treatment of the files of one rule.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(super) name: String,
    pub(super) globs: Vec<String>,
    pub(super) kind: ChunkKind,
    pub(super) language: String,
    pub(super) cutting: Cutting,
    pub(super) whole_up_to: usize,
    pub(super) max_bytes: u64,
    pub(super) charset: Option<Charset>,
    pub(super) excluded: bool,
    /// Whether it says `exclude = false` itself.
    pub(super) takes_in: bool,
    /// In the order of their names.
    pub(super) labels: Vec<(String, String)>,
}

impl Rule {
    /// Returns the rule's name in `explain`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the rule's cleaner.
    #[must_use]
    pub fn cleaner(&self) -> &str {
        "plain"
    }

    /// Returns the name of the rule's chunker.
    #[must_use]
    pub fn chunker(&self) -> &str {
        self.cutting.as_str()
    }

    /// Tells whether the rule excludes its files.
    #[must_use]
    pub fn excluded(&self) -> bool {
        self.excluded
    }

    /// Returns the size in bytes above which a file is no document.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Returns the encoding that the rule gives its files.
    #[must_use]
    pub(crate) fn charset(&self) -> Option<Charset> {
        self.charset
    }

    /// Returns the labels that the rule gives to `path`, in the order of their names.
    #[must_use]
    pub fn labels(&self, _path: &DocumentPath) -> Vec<(String, String)> {
        self.labels.clone()
    }

    /// Returns the name of `content` under this rule's way of cleaning, and the encoding that its tree gives it.
    #[must_use]
    pub fn document_id(&self, content: ContentId, charset: Option<Charset>) -> DocumentId {
        let mut hasher = Hasher::new("document").part(content.as_bytes()).part(&self.cleaning_fingerprint().to_bytes());
        if let Some(charset) = charset {
            hasher = hasher.part(charset.name().as_bytes());
        }
        DocumentId::from_words(hasher.finish())
    }

    /// Returns the identity of `text` under this rule's cutting.
    #[must_use]
    pub fn chunking_id(&self, text: TextHash) -> ChunkingId {
        let hasher = Hasher::new("chunking").part(&text.to_bytes()).part(&self.cutting_fingerprint().to_bytes());
        ChunkingId::from_words(hasher.finish())
    }

    /// Returns the kind of the rule's chunks.
    pub(crate) fn kind(&self) -> ChunkKind {
        self.kind
    }

    /// Returns the language in lower case, or nothing.
    pub(crate) fn language(&self) -> &str {
        &self.language
    }

    /// Returns how the rule cuts.
    pub(crate) fn cutting(&self) -> Cutting {
        self.cutting
    }

    /// Returns the bytes up to which a piece stays one chunk.
    pub(crate) fn whole_up_to(&self) -> usize {
        self.whole_up_to
    }

    /// Covers all settings that can change the text, or the reason why there is none.
    pub(super) fn cleaning_fingerprint(&self) -> Fingerprint {
        let mut hasher = Hasher::new("cleaning")
            .part(&CLEAN_VERSION.to_le_bytes())
            .part(self.cleaner().as_bytes())
            .part(&self.max_bytes.to_le_bytes())
            .part(&[u8::from(self.excluded)]);
        if let Some(charset) = self.charset {
            hasher = hasher.part(charset.name().as_bytes());
        }
        for (name, version) in DECODERS {
            hasher = hasher.part(name.as_bytes()).part(version.as_bytes());
        }
        Fingerprint::from_words(hasher.finish())
    }

    /// Covers all settings that can change the borders, names and kinds of chunks.
    pub(super) fn cutting_fingerprint(&self) -> Fingerprint {
        let mut hasher = Hasher::new("cutting")
            .part(&CHUNK_VERSION.to_le_bytes())
            .part(self.kind.as_str().as_bytes())
            .part(self.language.as_bytes())
            .part(self.chunker().as_bytes())
            .part(&(self.whole_up_to as u64).to_le_bytes());
        match self.cutting {
            Cutting::Syntax => {
                hasher = hasher.part(PARSER.0.as_bytes()).part(PARSER.1.as_bytes());
                if let Some((_, name, version)) = GRAMMARS.iter().find(|grammar| grammar.0 == self.language) {
                    hasher = hasher.part(name.as_bytes()).part(version.as_bytes());
                }
            }
            Cutting::Heading => hasher = hasher.part(HEADINGS.0.as_bytes()).part(HEADINGS.1.as_bytes()),
            Cutting::Paragraph | Cutting::Line => {}
        }
        Fingerprint::from_words(hasher.finish())
    }
}
