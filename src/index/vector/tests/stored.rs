//! Files that are read as they are needed: they answer as the engines in memory do, and files of earlier builds become such.

use super::*;
use crate::index::vector::clustered::ClusterRows;
use crate::index::vector::format::{SealedRows, Shape};
use half::f16;

/// What a file of rows is made from: in one piece, or dealt out to so many lists.
fn sealed_rows(model: &Model, dimensions: usize, lists: Option<u32>) -> SealedRows {
    let rows = rows(dimensions, model);
    let Some(lists) = lists else { return SealedRows::Flat(rows) };
    let nearest: Vec<u32> =
        rows.ordinals().iter().map(|ordinal| (ordinal.wrapping_mul(0x9e37_79b1) >> 8) % lists).collect();
    let centres = (0..lists as usize * dimensions).map(|at| f16::from_f32((at % 7) as f32 - 3.0)).collect::<Vec<_>>();
    SealedRows::Clustered(ClusterRows::deal_out(&rows, &centres, &nearest).unwrap())
}

fn shape(dimensions: usize) -> Shape {
    Shape { dimensions: dimensions as u32, ..SHAPE }
}

/// Writes rows as the file of a number.
fn write(directory: &Path, number: u32, backend: Backend, shape: Shape, rows: &SealedRows) -> Sealed {
    let path = files::sealed_path(directory, number);
    let sealed = Sealed::write_beside(&path, number, backend, shape, rows).unwrap();
    files::put_in_place(&path).unwrap();
    sealed
}

#[derive(Clone, Debug)]
struct Question {
    probe: u32,
    k: usize,
    /// One in so many is alive.
    every: u32,
    reach: Reach,
}

fn questions() -> impl Strategy<Value = Vec<Question>> {
    let reach = prop::sample::select(vec![Reach::Near, Reach::All]);
    let question = (0..700_u32, prop::sample::select(vec![1_usize, 10, 150, 5000]), 1..9_u32, reach);
    prop::collection::vec(question.prop_map(|(probe, k, every, reach)| Question { probe, k, every, reach }), 1..6)
}

proptest! {
    #![proptest_config(crate::index::cases(32))]

    #[test]
    fn a_file_answers_the_first_time_and_later_bit_for_bit_as_engines_in_memory_do(
        questions in questions(),
        lists in prop::option::of(1..40_u32),
        dimensions in prop::sample::select(vec![3_usize, 8, 32, 256]),
        backend in prop::sample::select(backends()),
    ) {
        let (model, directory) = (corpus(700, dimensions), TempDir::new().unwrap());
        let rows = sealed_rows(&model, dimensions, lists);
        let (mut in_file, mut in_memory) = (Segments::new(dimensions, backend), Segments::new(dimensions, backend));
        in_file.sealed.push(write(directory.path(), 0, backend, shape(dimensions), &rows));
        in_memory.sealed.push(Sealed::new(0, backend, &rows).unwrap());
        prop_assert_eq!(&in_file.sealed[0].block.rows().unwrap(), &rows);
        let (in_file, in_memory) = (in_file.set(), in_memory.set());
        for Question { probe, k, every, reach } in questions {
            let living: RoaringBitmap = (0..700).filter(|ordinal| (ordinal + probe) % every == 0).collect();
            let question = model[&probe].to_f32();
            let [found, expected] = [&in_file, &in_memory].map(|set| set.search(&living, &question, k, reach, &Scrambled).unwrap());
            prop_assert_eq!(bits(&found.ranked), bits(&expected.ranked));
            prop_assert_eq!(found.exact, expected.exact);
            prop_assert_eq!(in_file.vector_of(Ordinal::new(probe)).unwrap().unwrap(), model[&probe].components());
        }
        prop_assert_eq!(in_file.has(), in_memory.has());
    }
}

#[cfg(feature = "faiss")]
#[test]
fn codes_of_a_file_choose_the_rows_that_codes_in_memory_do() {
    let (model, directory) = (corpus(140_000, 8), TempDir::new().unwrap());
    let rows = sealed_rows(&model, 8, Some(2000));
    let (mut in_file, mut in_memory) = (Segments::new(8, Backend::Faiss), Segments::new(8, Backend::Faiss));
    in_file.sealed.push(write(directory.path(), 0, Backend::Faiss, shape(8), &rows));
    in_memory.sealed.push(Sealed::new(0, Backend::Faiss, &rows).unwrap());
    let (in_file, in_memory) = (in_file.set(), in_memory.set());
    let living: RoaringBitmap = (0..140_000).collect();
    for probe in (0..140_000).step_by(20_000) {
        let ask = |set: &VectorSet| set.search(&living, &model[&probe].to_f32(), 10, Reach::Near, &Scrambled).unwrap();
        let (found, expected) = (ask(&in_file), ask(&in_memory));
        assert_eq!(bits(&found.ranked), bits(&expected.ranked));
        assert!(!found.exact);
    }
}

#[test]
fn no_byte_of_a_file_goes_unchecked() {
    let (model, directory) = (corpus(60, 4), TempDir::new().unwrap());
    for lists in [None, Some(5)] {
        let rows = sealed_rows(&model, 4, lists);
        drop(write(directory.path(), 0, Backend::Flat, SHAPE, &rows));
        let path = files::sealed_path(directory.path(), 0);
        let whole = fs::read(&path).unwrap();
        assert_eq!(sealed::read(&path, SHAPE).unwrap(), rows);
        for at in 0..whole.len() {
            let mut content = whole.clone();
            content[at] ^= 1 << (at % 8);
            fs::write(&path, &content).unwrap();
            let read = sealed::read(&path, SHAPE);
            assert!(matches!(read, Err(VectorError::Damaged { .. })), "byte {at} of {}: {read:?}", whole.len());
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(sealed::read(&path, SHAPE).is_err(), "{length} bytes of {}", whole.len());
        }
    }
}

#[test]
fn no_number_in_front_of_the_directory_is_believed() {
    let (model, directory) = (corpus(50, 4), TempDir::new().unwrap());
    for lists in [None, Some(3)] {
        drop(write(directory.path(), 0, Backend::Flat, SHAPE, &sealed_rows(&model, 4, lists)));
        let path = files::sealed_path(directory.path(), 0);
        let whole = fs::read(&path).unwrap();
        for at in (32..48).step_by(4) {
            for number in [0, 1, 2, 17, 51, u32::MAX / 4, u32::MAX] {
                let mut hostile = whole.clone();
                hostile[at..at + 4].copy_from_slice(&u32::to_le_bytes(number));
                // With a sum that fits, where the numbers leave room for one.
                let field = |at: usize| u32::from_le_bytes(hostile[at..at + 4].try_into().unwrap()) as usize;
                let directory = field(40) * 36 + if field(36) == 1 { 64 } else { 0 } + field(44) + 4 * field(32);
                if let Some(directory) = hostile.get(80..80 + directory) {
                    let sum = blake3::Hasher::new().update(&hostile[..48]).update(directory).finalize();
                    hostile[48..80].copy_from_slice(sum.as_bytes());
                }
                let same = hostile == whole;
                fs::write(&path, &hostile).unwrap();
                let read = sealed::read(&path, SHAPE);
                assert!(same || read.is_err(), "{number} at {at}");
            }
        }
    }
}

#[test]
fn files_of_earlier_builds_are_read_and_written_anew_by_the_next_writer() {
    let model = corpus(40, 4);
    let parts: Vec<Model> = (0..2)
        .map(|part| model.iter().filter(|(o, _)| *o / 20 == part).map(|(o, v)| (*o, v.clone())).collect())
        .collect();
    for backend in backends() {
        let directory = TempDir::new().unwrap();
        let directory = directory.path();
        let rows = [sealed_rows(&parts[0], 4, None), sealed_rows(&parts[1], 4, Some(3))];
        for (number, rows) in (0..).zip(&rows) {
            fs::write(files::sealed_path(directory, number), earlier::encode_sealed(SHAPE, rows)).unwrap();
        }
        check_set(&VectorReader::open_with(directory, SHAPE, backend).unwrap().set(), &model, backend);
        let writer = self::writer(directory, backend);
        check_set(&writer.set(), &model, backend);
        assert_eq!(*writer.healed(), Healed::default());
        for (number, rows) in (0..).zip(&rows) {
            let path = files::sealed_path(directory, number);
            assert_eq!(fs::read(&path).unwrap()[8], 3);
            assert_eq!(sealed::read(&path, SHAPE).unwrap(), *rows);
        }
        check_set(&VectorReader::open_with(directory, SHAPE, backend).unwrap().set(), &model, backend);
    }
}

#[test]
fn a_file_that_lost_its_name_is_read_to_its_end() {
    let (model, directory) = (corpus(60, 4), TempDir::new().unwrap());
    let mut segments = Segments::new(4, Backend::Flat);
    segments.sealed.push(write(directory.path(), 0, Backend::Flat, SHAPE, &sealed_rows(&model, 4, None)));
    fs::remove_file(files::sealed_path(directory.path(), 0)).unwrap();
    for _ in 0..3 {
        check_set(&segments.set(), &model, Backend::Flat);
    }
}

#[test]
fn a_set_has_a_folder_of_its_own_and_a_store_of_another_model_is_refused() {
    let model: Model = (0..14).map(|ordinal| (ordinal, vector(ordinal))).collect();
    let all: Vec<(Ordinal, Vector)> = model.iter().map(|(o, v)| (Ordinal::new(*o), v.clone())).collect();
    let vectors = TempDir::new().unwrap();
    let vectors = vectors.path();
    let other = Shape { model: ModelId::from_words([1, 1]), ..SHAPE };
    VectorReader::open(vectors, other).unwrap();
    VectorWriter::open(vectors, SHAPE).unwrap().append(&all).unwrap();
    let sets: Vec<_> = fs::read_dir(vectors).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(sets, [folder::of_set(vectors, SHAPE)]);
    check_set(&VectorWriter::open(vectors, SHAPE).unwrap().set(), &model, Backend::of_this_machine());
    check_set(&VectorReader::open(vectors, SHAPE).unwrap().set(), &model, Backend::of_this_machine());
    let mut found = 0;
    assert!(check::check(vectors, SHAPE, &mut |_, _| found += 1).unwrap().damaged.is_empty());
    assert_eq!(found, 14);
    for refused in [VectorReader::open(vectors, other).err(), VectorWriter::open(vectors, other).err()] {
        assert!(matches!(refused, Some(VectorError::OtherModel { .. })));
    }
    assert_eq!(sets, [folder::of_set(vectors, SHAPE)], "what is refused makes no folder");
}
