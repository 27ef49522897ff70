//! The laws of the vectors, on random histories and against a model that keeps rows in a map.

use super::*;
use crate::index::TieOrder;
use dataflows::data::ModelId;
use dataflows::embed::Vector;
use proptest::prelude::*;
use roaring::RoaringBitmap;
use rows::Rows;
use sealed::{Sealed, Segments};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use tempfile::TempDir;

mod clustered;
mod collect;
mod damage;
mod stored;

const SHAPE: Shape = Shape { dimensions: 4, model: ModelId::from_words([7, 9]) };
const SEAL: usize = 6;

type Model = BTreeMap<u32, Vector>;

/// An order of ties that is not the order of ordinals.
struct Scrambled;

impl TieOrder for Scrambled {
    fn compare(&self, a: Ordinal, b: Ordinal) -> Ordering {
        let key = |ordinal: Ordinal| ordinal.get().wrapping_mul(0x9e37_79b1);
        key(a).cmp(&key(b))
    }
}

fn backends() -> Vec<Backend> {
    let backends = [
        Backend::Flat,
        #[cfg(feature = "faiss")]
        Backend::Faiss,
    ];
    backends.to_vec()
}

fn writer(directory: &Path, backend: Backend) -> VectorWriter {
    VectorWriter::open_with(directory, SHAPE, backend, SEAL).unwrap()
}

/// One of a few vectors, so that many entries share one.
fn vector(seed: u32) -> Vector {
    let component = |bit: u32| if seed >> bit & 1 == 1 { 1.0 } else { -0.5 };
    Vector::new(&[component(0), component(1), component(2), component(3)]).unwrap()
}

fn rows(dimensions: usize, model: &Model) -> Rows {
    let mut rows = Rows::new(dimensions);
    model.iter().for_each(|(&ordinal, vector)| rows.push(Ordinal::new(ordinal), vector));
    rows
}

/// The same rows in `parts` segments, dealt out in turn.
fn layout(backend: Backend, dimensions: usize, model: &Model, parts: usize) -> VectorSet {
    let mut segments = Segments::new(dimensions, backend);
    for part in 0..parts {
        let dealt = model.iter().enumerate().filter(|(at, _)| at % parts == part).map(|(_, (&o, v))| (o, v.clone()));
        let rows = rows(dimensions, &dealt.collect());
        if !rows.is_empty() {
            let rows = format::SealedRows::Flat(rows);
            segments.sealed.push(Sealed::new(part as u32, backend, &rows).unwrap());
        }
    }
    segments.set()
}

fn bits(hits: &[(Ordinal, f32)]) -> Vec<(u32, u32)> {
    hits.iter().map(|(ordinal, score)| (ordinal.get(), score.to_bits())).collect()
}

/// Checks that `set` holds exactly the rows of `model` and answers as a single segment of them does.
fn check_set(set: &VectorSet, model: &Model, backend: Backend) {
    assert_eq!(*set.has(), model.keys().copied().collect::<RoaringBitmap>());
    assert_eq!(set.len(), model.len(), "no row is there twice");
    for (&ordinal, vector) in model {
        assert_eq!(set.vector_of(Ordinal::new(ordinal)).unwrap().unwrap(), vector.components());
    }
    assert_eq!(set.vector_of(Ordinal::new(u32::MAX)).unwrap(), None);
    let alone = layout(backend, 4, model, 1);
    let living: RoaringBitmap = model.keys().copied().filter(|ordinal| ordinal % 3 != 1).chain([4_000_000]).collect();
    for (question, k) in [([1.0, 0.2, 0.1, -0.3], 3), ([0.0, 1.0, 0.0, 0.0], 1), ([-1.0, -1.0, 2.0, 0.5], 1000)] {
        let found = set.search(&living, &question, k, Reach::All, &Scrambled).unwrap().ranked;
        assert_eq!(bits(&found), bits(&alone.search(&living, &question, k, Reach::All, &Scrambled).unwrap().ranked));
        assert!(found.is_sorted_by(|a, b| a.1 > b.1 || a.1 == b.1 && Scrambled.compare(a.0, b.0).is_lt()));
        let expected = living.iter().filter(|ordinal| model.contains_key(ordinal)).count().min(k);
        assert_eq!(found.len(), expected);
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Appends so many rows, with gaps of this length between their ordinals.
    Append {
        rows: u32,
        gap: u32,
    },
    /// Appends vectors for skipped ordinals, and once more for some that have theirs.
    Late,
    Reopen,
    /// Kills the writer while this many bytes of a frame are written.
    Tear {
        bytes: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..20_u32, 0..3_u32).prop_map(|(rows, gap)| Step::Append { rows, gap }),
        1 => Just(Step::Late),
        1 => Just(Step::Reopen),
        1 => (0..40_usize).prop_map(|bytes| Step::Tear { bytes }),
    ];
    prop::collection::vec(step, 1..20)
}

fn tail_file(directory: &Path) -> Option<std::path::PathBuf> {
    let tail = files::Listing::read(directory).unwrap().tail?;
    Some(files::tail_path(directory, tail))
}

fn run(steps: &[Step], backend: Backend) {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    let mut writer = writer(directory, backend);
    let mut reader = VectorReader::open_with(directory, SHAPE, backend).unwrap();
    let mut model = Model::new();
    let mut next = 0;
    for step in steps {
        match *step {
            Step::Append { rows, gap } => {
                let mut batch: Vec<(Ordinal, Vector)> = Vec::new();
                for _ in 0..rows {
                    batch.push((Ordinal::new(next), vector(next / 2)));
                    next += 1 + gap;
                }
                batch.reverse();
                writer.append(&batch).unwrap();
                model.extend(batch.into_iter().map(|(ordinal, vector)| (ordinal.get(), vector)));
            }
            Step::Late => {
                let batch: Vec<(Ordinal, Vector)> =
                    (0..next).step_by(3).map(|ordinal| (Ordinal::new(ordinal), vector(ordinal / 2))).collect();
                writer.append(&batch).unwrap();
                model.extend(batch.into_iter().map(|(ordinal, vector)| (ordinal.get(), vector)));
            }
            Step::Reopen => {
                drop(writer);
                writer = self::writer(directory, backend);
                assert_eq!(*writer.healed(), Healed::default());
            }
            Step::Tear { bytes } => {
                drop(writer);
                let torn = tail_file(directory).map_or(0, |path| {
                    let whole = format::encode_frame(
                        SHAPE,
                        &rows(4, &Model::from([(next + 1, vector(1)), (next + 2, vector(2))])),
                    );
                    let torn = &whole[..bytes.min(whole.len() - 1)];
                    let mut content = fs::read(&path).unwrap();
                    content.extend_from_slice(torn);
                    fs::write(&path, content).unwrap();
                    torn.len()
                });
                reader.refresh().unwrap();
                check_set(&reader.set(), &model, backend);
                writer = self::writer(directory, backend);
                assert_eq!(writer.healed().cut_bytes, torn as u64);
            }
        }
        check_set(&writer.set(), &model, backend);
        assert_eq!(writer.held(), writer.set().has());
        assert_eq!(writer.next_ordinal(), model.keys().last().map_or(0, |last| last + 1));
        reader.refresh().unwrap();
        check_set(&reader.set(), &model, backend);
        assert!(!reader.refresh().unwrap());
    }
    check_set(&VectorReader::open_with(directory, SHAPE, backend).unwrap().set(), &model, backend);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_history_holds_and_finds_what_the_model_does(steps in steps()) {
        for backend in backends() {
            run(&steps, backend);
        }
    }
}

/// Structured vectors: a few directions with noise, and every tenth one twice.
fn corpus(rows: u32, dimensions: usize) -> Model {
    let mut state = 1_u64;
    let mut noise = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let centres: Vec<Vec<f32>> = (0..8).map(|_| (0..dimensions).map(|_| noise()).collect()).collect();
    let mut model = Model::new();
    for ordinal in 0..rows {
        let twin = ordinal.checked_sub(7).filter(|_| ordinal % 10 == 9).and_then(|twin| model.get(&twin)).cloned();
        let mut fresh =
            || centres[ordinal as usize % 8].iter().map(|centre| centre + 0.5 * noise()).collect::<Vec<f32>>();
        model.insert(ordinal, twin.unwrap_or_else(|| Vector::new(&fresh()).unwrap()));
    }
    model
}

#[test]
fn engines_agree_and_layouts_do_not_matter_at_any_share_of_living() {
    let model = corpus(2000, 32);
    let shares: [(&str, RoaringBitmap); 5] = [
        ("none", RoaringBitmap::new()),
        ("one", RoaringBitmap::from([1234])),
        ("1 %", (0..2000).filter(|ordinal| ordinal % 100 == 3).collect()),
        ("50 %", (0..2000).filter(|ordinal| ordinal / 3 % 2 == 0).collect()),
        ("all", (0..5000).collect()),
    ];
    for (share, living) in shares {
        for probe in [0_u32, 9, 777] {
            let question: Vec<f32> = model[&probe].to_f32().iter().map(|component| component * 3.0).collect();
            let exact = |ordinal: u32| -> f64 {
                let row = model[&ordinal].to_f32();
                row.iter().zip(&question).map(|(&a, &b)| f64::from(a) * f64::from(b) / 3.0).sum()
            };
            for backend in backends() {
                for k in [0, 1, 10, 1999, 5000, usize::MAX] {
                    let found = layout(backend, 32, &model, 1)
                        .search(&living, &question, k, Reach::All, &Scrambled)
                        .unwrap()
                        .ranked;
                    let context = format!("{backend:?}, {share} alive, k = {k}");
                    assert_eq!(found.len(), k.min(living.range(..2000).count()), "{context}");
                    for parts in [2, 7] {
                        let other = layout(backend, 32, &model, parts);
                        let other = other.search(&living, &question, k, Reach::All, &Scrambled).unwrap().ranked;
                        assert_eq!(bits(&found), bits(&other), "{context}, {parts} segments");
                    }
                    let mut scores: Vec<f64> = living.range(..2000).map(exact).collect();
                    scores.sort_by(|a, b| b.total_cmp(a));
                    for ((ordinal, score), expected) in found.iter().zip(scores) {
                        assert!(living.contains(ordinal.get()), "{context}");
                        assert!((f64::from(*score) - expected).abs() < 1e-3, "{context}: {score} {expected}");
                        assert!((exact(ordinal.get()) - expected).abs() < 1e-3, "{context}");
                    }
                }
            }
        }
    }
}

#[test]
fn equal_scores_at_the_border_come_in_their_order_however_many_there_are() {
    let model: Model = (0..500).map(|ordinal| (ordinal, vector(u32::from(ordinal % 50 == 0)))).collect();
    let living: RoaringBitmap = (0..500).collect();
    for backend in backends() {
        for parts in [1, 3, 40] {
            let set = layout(backend, 4, &model, parts);
            let found = set.search(&living, &vector(0).to_f32(), 12, Reach::All, &Scrambled).unwrap().ranked;
            let mut expected: Vec<Ordinal> = (0..500).filter(|o| o % 50 != 0).map(Ordinal::new).collect();
            expected.sort_by(|a, b| Scrambled.compare(*a, *b));
            assert_eq!(found.iter().map(|hit| hit.0).collect::<Vec<_>>(), expected[..12], "{parts} segments");
        }
    }
}

#[test]
fn questions_without_a_direction_are_refused() {
    for backend in backends() {
        let set = layout(backend, 4, &corpus(10, 4), 2);
        let ask = |question: &[f32]| set.search(&RoaringBitmap::from([1]), question, 1, Reach::Near, &Scrambled);
        assert!(matches!(ask(&[0.0; 4]), Err(VectorError::Query { .. })));
        assert!(matches!(ask(&[1.0, f32::NAN, 0.0, 0.0]), Err(VectorError::Query { .. })));
        assert!(matches!(ask(&[1.0; 3]), Err(VectorError::OtherDimensions { found: 3, expected: 4 })));
        assert!(ask(&[f32::MAX; 4]).unwrap().ranked[0].1.is_finite());
    }
}

#[test]
fn a_reader_beside_the_writer_sees_all_that_was_durable_and_only_whole_batches() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    let (durable, done) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = VectorReader::open_with(directory, SHAPE, Backend::Flat).unwrap();
            while !done.load(SeqCst) {
                let before = durable.load(SeqCst);
                reader.refresh().unwrap();
                let set = reader.set();
                let rows = set.len() as u32;
                assert!(rows >= before, "{rows} of {before}");
                assert_eq!(*set.has(), (0..rows).collect::<RoaringBitmap>());
            }
        });
        let mut writer = writer(directory, Backend::Flat);
        for batch in 0..150_u32 {
            let rows = batch * 2..batch * 2 + 2;
            writer.append(&rows.clone().map(|o| (Ordinal::new(o), vector(o))).collect::<Vec<_>>()).unwrap();
            durable.store(rows.end, SeqCst);
        }
        done.store(true, SeqCst);
    });
}

#[test]
fn small_segments_stay_few_and_a_set_in_use_stays_as_it_was() {
    let directory = TempDir::new().unwrap();
    let mut writer = VectorWriter::open_with(directory.path(), SHAPE, Backend::Flat, SEAL * 1000).unwrap();
    let mut first = None;
    for ordinal in 0..300 {
        writer.append(&[(Ordinal::new(ordinal), vector(ordinal))]).unwrap();
        assert!(writer.set().segments() <= 9, "{} segments", writer.set().segments());
        first.get_or_insert_with(|| writer.set());
    }
    assert_eq!(first.unwrap().len(), 1);
}
