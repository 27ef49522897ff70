//! Which parts redaction hides, and which stay.

use super::words::all_kept;
use super::*;
use std::collections::BTreeSet;

const CODE: &str = "/// Spawns the Quicksilver camera 12345 times.\npub fn spawn_quicksilver(world: &mut WorldState) -> u32 {\n    world.HTTPServer(0xDEADBEEF, 1_000u64, \"Geheimnis 渲染\")\n}\n";

fn redactor() -> Redactor {
    Redactor::new([7; 32])
}

#[test]
fn words_go_and_shapes_stay() {
    let redacted = redactor().text(CODE);
    for gone in ["quicksilver", "spawn", "world", "camera", "http", "server", "geheimnis", "渲", "deadbeef", "12345"] {
        assert!(!redacted.to_lowercase().contains(gone), "{gone} is left in {redacted}");
    }
    for stays in ["pub fn ", ": &mut ", ") -> u32 {", "(0x", "u64, \""] {
        assert!(redacted.contains(stays), "{stays} is not left in {redacted}");
    }
    assert_eq!(redacted.chars().count(), CODE.chars().count(), "{redacted}");
    let shape = |text: &str| -> String {
        text.chars()
            .map(|c| {
                if c.is_uppercase() {
                    'A'
                } else if c == '\n' {
                    c
                } else {
                    ' '
                }
            })
            .collect()
    };
    let hex = |text: &str| text.replace("0xDEADBEEF", "").replace(&redacted[redacted.find("0x").unwrap()..][..10], "");
    assert_eq!(shape(&hex(&redacted)), shape(&hex(CODE)));
}

#[test]
fn a_word_has_one_pseudonym_wherever_it_stands_and_two_words_have_two() {
    let mut redactor = redactor();
    let camel = redactor.text("SpawnCamera");
    let snake = redactor.text("spawn_camera");
    assert_eq!(camel.to_lowercase(), snake.replace('_', ""));
    assert_eq!(redactor.text("SPAWN"), snake.split('_').next().unwrap().to_uppercase());
    let words: Vec<String> =
        (0..20_000).map(|n| format!("w{}", char::from(b'a' + n as u8 % 26)) + &letters(n)).collect();
    let pseudonyms: BTreeSet<String> = words.iter().map(|word| redactor.text(word)).collect();
    let distinct: BTreeSet<&String> = words.iter().collect();
    assert_eq!(pseudonyms.len(), distinct.len());
    assert!(all_kept().all(|kept| kept.len() < 2 || !pseudonyms.contains(&kept)), "no pseudonym is a word that stays");
}

fn letters(mut number: u32) -> String {
    let mut text = String::new();
    while number > 0 {
        text.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    text
}

#[test]
fn paths_lose_their_words_and_keep_what_rules_and_manifests_need() {
    let mut redactor = redactor();
    for (path, ending) in [
        ("Source/Quicksilver/Quicksilver.Build.cs", ".Build.cs"),
        ("crates/quicksilver/Cargo.toml", "/Cargo.toml"),
        ("quicksilver.rs", ".rs"),
        ("docs/quicksilver/README.md", ".md"),
        ("LICENSE-QUICKSILVER", ""),
    ] {
        let redacted = redactor.path(&path.into()).display().into_owned();
        assert!(!redacted.to_lowercase().contains("quicksilver"), "{redacted}");
        assert!(redacted.ends_with(ending), "{redacted}");
        assert_eq!(redacted.matches('/').count(), path.matches('/').count());
    }
    let folder = |path: &str| path.rsplit_once('/').unwrap().0.to_owned();
    let (one, two) = (redactor.path(&"a/bravo/charlie.rs".into()), redactor.path(&"a/bravo/delta.rs".into()));
    assert_eq!(folder(&one.display()), folder(&two.display()));
    assert_ne!(one, two);
}

#[test]
fn what_is_no_text_becomes_nothing_of_its_size() {
    let mut redactor = redactor();
    let picture = [b"secret".to_vec(), vec![0; 100]].concat();
    let (id, stored) = redactor.content(blob_id(&picture), Stored::Whole(picture.clone()));
    assert_ne!(id, blob_id(&picture));
    let Stored::Head(size, head) = stored else { panic!("it is no text") };
    assert_eq!(size, picture.len() as u64);
    assert!(!head.windows(6).any(|window| window == b"secret"));
}

#[test]
fn another_key_gives_other_pseudonyms() {
    assert_ne!(Redactor::new([1; 32]).text("quicksilver"), Redactor::new([2; 32]).text("quicksilver"));
    assert_eq!(Redactor::new([1; 32]).text("quicksilver"), Redactor::new([1; 32]).text("quicksilver"));
}

#[test]
fn no_two_views_have_one_name_where_numbers_come_out_alike() {
    let mut redactor = redactor();
    let names: Vec<String> = (100..1000).map(|number| format!("v{number}")).collect();
    let redacted: BTreeSet<String> = names.iter().map(|name| redactor.name(name)).collect();
    assert_eq!(redacted.len(), names.len());
    assert_eq!(redactor.name(&names[7]), redactor.name(&names[7]));
}

#[test]
fn keys_and_hashes_do_not_stay_though_each_of_their_parts_would() {
    let mut redactor = redactor();
    for key in ["k9J7s2F1q8Z3x5C6v4B0", "d4e5f6a7b8c9d0e1f2", "a1b2c3", "s_e_c_r_e_t", "aBcD", "x1Y2"] {
        let redacted = redactor.text(key);
        assert_ne!(redacted, key);
        let shape = |text: &str| -> Vec<(bool, bool, bool)> {
            text.chars().map(|c| (c.is_numeric(), c.is_uppercase(), c == '_')).collect()
        };
        assert_eq!(shape(&redacted), shape(key), "{redacted}");
        assert_eq!(redactor.text(key), redacted);
    }
    // Short or separate parts stay.
    for kept in ["x1", "p2p", "a + b", "12-34", "i = 7"] {
        assert_eq!(redactor.text(kept), kept);
    }
}
