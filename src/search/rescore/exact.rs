//! A name typed as the question: its definition comes first.
//!
//! In: a question. Out: the name that it is, if it is nothing else, and how well a card's symbol meets it.
//!
//! **Invariant:** a question of several words is no name. Case decides between symbols that differ in nothing else.
//!
//! | question | meets |
//! |---|---|
//! | `spawn_empty` | symbols whose last part is this |
//! | `World::spawn`, `UGameplayStatics.ApplyDamage`, `app->run` | symbols that end with these parts |
//! | `bevy_ecs::World::spawn` | the same, where module or folder hold the parts in front |

use crate::index::lexical::LexicalQuery;
use dataflows::data::{Card, ChunkKind};

/// Longest question that is read as a name, in bytes.
const MOST_BYTES: usize = 256;

/// A name, by its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::search) struct ExactName(Vec<String>);

impl ExactName {
    /// Returns the name that a question is, if it is one.
    pub(in crate::search) fn read(question: &str) -> Option<Self> {
        let typed = question.trim().trim_matches(['"', '`']).trim_end_matches("()");
        if typed.is_empty() || typed.len() > MOST_BYTES {
            return None;
        }
        let parts = parts(typed);
        let is_name = |part: &String| part.starts_with("operator") || part.chars().all(is_of_name);
        (parts.iter().all(|part| !part.is_empty()) && parts.iter().all(is_name)).then_some(Self(parts))
    }

    /// Returns the query that finds entries with this name in theirs: its last part, and the part in front of it.
    pub(in crate::search) fn query(&self) -> LexicalQuery {
        let last = &self.0[self.0.len().saturating_sub(2)..];
        LexicalQuery::parse(&format!("\"{}\"", last.join("::")))
    }

    /// Returns the query that finds entries with its last part in their names.
    pub(in crate::search) fn short_query(&self) -> LexicalQuery {
        LexicalQuery::parse(&format!("\"{}\"", self.0.last().map_or("", String::as_str)))
    }

    /// Returns how well a card's symbol meets the name, between 0 and 1.
    pub(in crate::search) fn meets(&self, card: &Card) -> f64 {
        if card.kind != ChunkKind::Code || card.symbol.is_empty() {
            return 0.0;
        }
        let own = parts(&card.symbol);
        let equal = |own: &String, asked: &String| own.eq_ignore_ascii_case(asked);
        let shared = own.iter().rev().zip(self.0.iter().rev()).take_while(|(own, asked)| equal(own, asked)).count();
        let in_front = &self.0[..self.0.len() - shared];
        let holds = |part: &String| {
            let part = part.to_ascii_lowercase();
            card.module.to_ascii_lowercase() == part
                || card.folder.split('/').any(|folder| folder.to_ascii_lowercase() == part)
        };
        if shared == 0 || !in_front.iter().all(holds) {
            return 0.0;
        }
        let same_case = own.iter().rev().zip(self.0.iter().rev()).take(shared).all(|(own, asked)| own == asked);
        // Of a type the declaration comes before its `impl` blocks, and a whole symbol before the end of a longer one.
        let is_block = card.name.trim_start().starts_with("impl");
        0.9 + 0.04 * f64::from(u8::from(same_case))
            + 0.03 * f64::from(u8::from(!is_block))
            + 0.03 * f64::from(u8::from(own.len() == shared))
    }
}

/// Takes a name apart at `::`, `.` and `->`.
fn parts(name: &str) -> Vec<String> {
    name.replace("->", "::").replace('.', "::").split("::").map(str::to_owned).collect()
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '~' | '$' | '!')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(symbol: &str, module: &str) -> Card {
        Card {
            kind: ChunkKind::Code,
            language: String::new(),
            symbol: symbol.to_owned(),
            name: format!("fn {symbol}"),
            folder: "crates/ecs/src".to_owned(),
            module: module.to_owned(),
            labels: Vec::new(),
        }
    }

    #[test]
    fn only_a_single_name_is_one() {
        for question in [
            "World::spawn",
            "spawn_empty",
            "UGameplayStatics.ApplyDamage",
            "app->run()",
            "`Query::get_mut`",
            "operator<<",
        ] {
            assert!(ExactName::read(question).is_some(), "{question}");
        }
        for question in ["spawn a camera", "", "::", "a::", "--flag", "what?", "#include <x>"] {
            assert!(ExactName::read(question).is_none(), "{question}");
        }
    }

    #[test]
    fn a_symbol_meets_a_name_that_it_ends_with() {
        let name = |name: &str| ExactName::read(name).unwrap();
        let world = card("World::spawn", "bevy_ecs");
        assert!(name("World::spawn").meets(&world) > name("spawn").meets(&world));
        assert!(name("spawn").meets(&world) > 0.0);
        assert!(name("bevy_ecs::World::spawn").meets(&world) > 0.9);
        assert!(name("ecs::World::spawn").meets(&world) > 0.9, "a folder on its way");
        assert!(name("world::SPAWN").meets(&world) < name("World::spawn").meets(&world));
        for other in ["Commands::spawn", "World::spawn_empty", "World", "render::World::spawn"] {
            assert_eq!(name(other).meets(&world), 0.0, "{other}");
        }
    }
}
