//! The built-in model against its reference vectors, and the cached words against the tokenizer itself.

use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// The model with the whole tokenizer.
fn model() -> &'static StaticModel {
    static MODEL: OnceLock<StaticModel> = OnceLock::new();
    let model = MODEL.get_or_init(StaticModel::new);
    model.pieces().unwrap();
    model
}

/// The text in the form in which the tokenizer would get it in one piece.
fn prepared(text: &str) -> String {
    let mut words = Vec::new();
    for_each_word(text, |word| words.push(word.to_owned()));
    words.join(" ")
}

/// Known tokens of the whole text, by the tokenizer alone.
fn tokens_in_one_go(text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    model().pieces().unwrap().tokenize(&prepared(text), &mut tokens).unwrap();
    tokens
}

fn tokens(text: &str) -> Vec<u32> {
    tokens_by(model().pieces().unwrap(), text)
}

fn tokens_by(pieces: &Pieces, text: &str) -> Vec<u32> {
    model()
        .with_worker(|_, worker| {
            worker.read(&mut |word, tokens| pieces.tokenize(word, tokens), text)?;
            Ok(worker.tokens.clone())
        })
        .unwrap()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn the_fingerprint_names_the_files() {
    let hash = blake3::Hasher::new().update(EMBEDDINGS).update(super::super::pieces::file()).finalize();
    assert_eq!(hash.to_hex().as_str(), FILES, "the files changed: put their hash into FILES");
    assert_ne!(model().fingerprint(), ModelId::default());
}

#[test]
fn agrees_with_the_reference() {
    #[derive(serde::Deserialize)]
    struct Case {
        text: String,
        kind: String,
        prep: String,
        ids: Vec<u32>,
        vector: Vec<f32>,
    }
    let cases: Vec<Case> = serde_json::from_str(include_str!("../static-bi/reference_vectors.json")).unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases {
        assert_eq!(prepared(&case.text), case.prep);
        assert_eq!(tokens(&case.text), case.ids);
        let vector = match case.kind.as_str() {
            "query" => model().embed_query(&case.text).unwrap().unwrap(),
            _ => model().embed_documents(&[&case.text]).unwrap().remove(0).unwrap().to_f32(),
        };
        let cosine = cosine(&vector, &case.vector);
        assert!(cosine >= 0.99999, "{} {:?}: {cosine}", case.kind, case.text);
    }
}

#[test]
fn a_text_without_a_known_token_has_no_vector() {
    for text in ["", " \n\t", "{}();", "\u{3000}\u{2581}"] {
        assert_eq!(model().embed_documents(&[text]).unwrap(), [None], "{text:?}");
        assert_eq!(model().embed_query(text).unwrap(), None, "{text:?}");
    }
}

#[test]
fn the_batch_does_not_matter() {
    let texts = ["fn spawn_camera()", "", "返回下一帧的渲染目标", "fn spawn_camera()", "struct A;"];
    let together = model().embed_documents(&texts).unwrap();
    let other = StaticModel::new();
    for (text, vector) in texts.iter().zip(&together) {
        assert_eq!(&other.embed_documents(&[text]).unwrap()[0], vector);
    }
}

#[test]
fn the_memory_of_words_is_bounded_and_starting_over_changes_nothing() {
    let text: String = (0..MAX_WORDS + 100).map(|n| format!("w{}\n", name(n))).collect();
    let first = tokens(&text);
    assert_eq!(tokens(&text), first);
    model()
        .with_worker(|_, worker| {
            let pieces = model().pieces()?;
            worker.read(&mut |word, tokens| pieces.tokenize(word, tokens), &text)?;
            assert!(worker.words.len() <= MAX_WORDS && worker.word_tokens.len() < MAX_WORD_TOKENS + 64);
            Ok(())
        })
        .unwrap();
}

/// A number in letters, so that it is one word.
fn name(mut number: usize) -> String {
    let mut letters = String::new();
    while number > 0 {
        letters.push((b'a' + (number % 26) as u8) as char);
        number /= 26;
    }
    letters
}

#[test]
fn a_huge_word_takes_linear_time() {
    for unit in ["a", "aB", "界", "1", "\u{301}", "\u{fdfa}", "_", "K"] {
        let text = unit.repeat((1 << 18) / unit.len());
        let start = Instant::now();
        model().embed_documents(&[&text]).unwrap();
        assert!(start.elapsed() < Duration::from_secs(10), "{unit:?} took {:?}", start.elapsed());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn remembered_words_give_the_tokens_of_the_whole_text(
        text in prop_oneof![
            "[a-zA-Z_0-9 ]{0,60}",
            "([a-z]{1,12}|[A-Z][a-z]{1,8}|[0-9]{1,3}|[世界渲染目标返回。，]{1,9}| |\\n|::){0,20}",
            "(?s)[ ´¨\u{a0}\u{301}\u{2581}éＡ①ﬁ。a]{0,30}",
            "(?s).{0,60}",
        ],
    ) {
        let expected = tokens_in_one_go(&text);
        prop_assert_eq!(tokens(&text), expected.clone());
        prop_assert_eq!(tokens(&text), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_small_tokenizer_gives_the_tokens_of_the_whole_one(
        text in prop_oneof![
            "([a-z]{1,12}|[A-Z][a-z]{1,8}|[0-9]{1,3}|[世界渲染目标返回。，]{1,9}| |_){0,12}",
            "(?s)[ ´¨\u{a0}\u{301}\u{2581}éＡ①ﬁ\u{1f980}。a]{0,30}",
            "(how|to|spawn|an|entity|with|transform|renderGraph|system|schedule| ){1,20}",
        ],
    ) {
        let mut small = Vec::new();
        let vocabulary = Vocabulary::read().unwrap();
        vocabulary.pieces_of(&prepared(&text)).unwrap().tokenize(&prepared(&text), &mut small).unwrap();
        prop_assert_eq!(small, tokens_in_one_go(&text));
    }
}

#[test]
fn questions_have_the_vectors_of_the_whole_tokenizer_and_do_not_set_it_up() {
    let long = "window".repeat(MAX_SMALL_BYTES);
    let questions = [
        "how to spawn an entity",
        "WindowResized event 世界",
        "despawn",
        "",
        "renderGraph2 node 🦀",
        "a b",
        "node event c",
    ];
    let fresh = StaticModel::new();
    for question in questions {
        assert_eq!(fresh.embed_query(question).unwrap(), model().embed_query(question).unwrap(), "{question}");
    }
    assert!(fresh.pieces.get().is_none(), "however many there are");
    assert_eq!(fresh.embed_query(&long).unwrap(), model().embed_query(&long).unwrap());
    assert!(fresh.pieces.get().is_some(), "but for one as long as a document");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn tokens_are_those_of_the_whole_tokenizer_however_the_cache_starts_over(
        calls in prop::collection::vec(prop::collection::vec("([a-z]{1,7} |[A-Z][a-z]{2,5}_|渲染|K|x{70} ){0,90}", 1..8), 1..6),
    ) {
        let (small, whole) = (StaticModel::new(), StaticModel::new());
        whole.pieces().unwrap();
        for texts in &calls {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            prop_assert_eq!(small.tokens(&texts).unwrap(), whole.tokens(&texts).unwrap());
        }
        prop_assert!(small.pieces.get().is_none(), "the whole tokenizer was never set up");
    }
}
