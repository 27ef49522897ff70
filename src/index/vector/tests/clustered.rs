//! Rows in IVF lists: visiting all lists is exact, near ones nearly so, and a search of sorted files costs its live rows.

use super::*;
use crate::index::background::Unwanted;
use crate::index::vector::clustered::ClusterRows;
use crate::index::vector::format::SealedRows;
use crate::index::{Tended, Urgency};
use half::f16;

/// The same rows in one clustered segment: each row in a list that its ordinal gives.
fn dealt(backend: Backend, dimensions: usize, model: &Model, lists: u32) -> VectorSet {
    let rows = rows(dimensions, model);
    let nearest: Vec<u32> = rows.ordinals().iter().map(|ordinal| ordinal.wrapping_mul(0x9e37_79b1) >> 8).collect();
    let nearest: Vec<u32> = nearest.into_iter().map(|hash| hash % lists).collect();
    let centres: Vec<f16> = (0..lists as usize * dimensions).map(|at| f16::from_f32((at % 7) as f32 - 3.0)).collect();
    let clusters = ClusterRows::deal_out(&rows, &centres, &nearest).unwrap();
    let mut segments = Segments::new(dimensions, backend);
    segments.sealed.push(Sealed::new(0, backend, &SealedRows::Clustered(clusters)).unwrap());
    segments.set()
}

#[test]
fn all_lists_together_answer_as_one_block_does() {
    let model = corpus(2000, 32);
    let shares: [RoaringBitmap; 4] = [
        RoaringBitmap::from([1234]),
        (0..2000).filter(|ordinal| ordinal % 100 == 3).collect(),
        (0..2000).filter(|ordinal| ordinal / 3 % 2 == 0).collect(),
        (0..5000).collect(),
    ];
    for living in shares {
        for probe in [0_u32, 9, 777] {
            let question = model[&probe].to_f32();
            for backend in backends() {
                for k in [1, 10, 1999, usize::MAX] {
                    let ask = |set: &VectorSet, reach| set.search(&living, &question, k, reach, &Scrambled).unwrap();
                    let alone = ask(&layout(backend, 32, &model, 1), Reach::All);
                    for lists in [1, 7, 300] {
                        for reach in [Reach::All, Reach::Near] {
                            let found = ask(&dealt(backend, 32, &model, lists), reach);
                            assert_eq!(bits(&found.ranked), bits(&alone.ranked), "{backend:?}, {lists} lists, k = {k}");
                            assert!(found.exact, "few are alive, so all of them are looked at");
                        }
                    }
                }
            }
        }
    }
}

#[cfg(feature = "faiss")]
#[test]
fn near_lists_find_nearly_all_and_say_so_and_few_living_are_looked_at_exactly() {
    let model = corpus(150_000, 16);
    let rows = rows(16, &model);
    let backend = Backend::Faiss;
    let unwanted = Unwanted::default();
    let clusters = backend.deal_out(&rows, 300, &unwanted).unwrap().unwrap();
    unwanted.set();
    assert!(matches!(backend.deal_out(&rows, 300, &unwanted), Err(VectorError::Upkeep { .. })));
    assert_eq!(clusters.rows(), rows, "every row is in one list");
    let mut segments = Segments::new(16, backend);
    segments.sealed.push(Sealed::new(0, backend, &SealedRows::Clustered(clusters)).unwrap());
    let set = segments.set();
    let all: RoaringBitmap = (0..150_000).collect();
    let (mut found_again, mut found_alive) = (0, 0);
    for probe in (0..150_000).step_by(1500) {
        let question = model[&probe].to_f32();
        let ask = |living: &RoaringBitmap, reach| set.search(living, &question, 10, reach, &Scrambled).unwrap();
        let (near, exact) = (ask(&all, Reach::Near), ask(&all, Reach::All));
        assert!(exact.exact && !near.exact);
        for (ordinal, score) in &near.ranked {
            let product: f32 = question.iter().zip(model[&ordinal.get()].to_f32()).map(|(a, b)| a * b).sum();
            let length = question.iter().map(|component| component * component).sum::<f32>().sqrt();
            assert!((score - product / length).abs() < 1e-3, "a score comes from the row and not from its code");
        }
        // One in twenty is dead, here and there.
        let most: RoaringBitmap = (0..150_000).filter(|ordinal| (ordinal / 7 + probe) % 20 != 0).collect();
        let living = ask(&most, Reach::Near);
        assert!(!living.exact && living.ranked.iter().all(|(ordinal, _)| most.contains(ordinal.get())));
        found_alive += living.ranked.iter().filter(|hit| ask(&most, Reach::All).ranked.contains(hit)).count();
        found_again += near.ranked.iter().filter(|hit| exact.ranked.contains(hit)).count();
        let few: RoaringBitmap = (0..150_000).filter(|ordinal| ordinal % 3 == probe % 3).collect();
        let (near, exact) = (ask(&few, Reach::Near), ask(&few, Reach::All));
        assert!(near.exact && bits(&near.ranked) == bits(&exact.ranked));
    }
    assert!(found_again >= 970 && found_alive >= 970, "{found_again} and {found_alive} of 1000");
    let everything = set.search(&all, &model[&0].to_f32(), 20_000, Reach::Near, &Scrambled).unwrap();
    assert!(everything.exact, "where k is so large that all are looked at, nothing is missing");
}

fn decode_sealed(bytes: &[u8]) -> Result<SealedRows, VectorError> {
    earlier::read_sealed(&mut std::io::Cursor::new(bytes), bytes.len() as u64, SHAPE, Path::new("file"))
}

#[test]
fn a_file_of_an_earlier_build_reads_back_and_no_number_in_it_is_believed() {
    let model = corpus(50, 4);
    let rows = rows(4, &model);
    let nearest: Vec<u32> = (0..50).map(|row| row % 3).collect();
    let centres = vec![f16::ONE; 4 * 4];
    let clusters = SealedRows::Clustered(ClusterRows::deal_out(&rows, &centres, &nearest).unwrap());
    let bytes = earlier::encode_sealed(SHAPE, &clusters);
    assert_eq!(decode_sealed(&bytes).unwrap(), clusters);
    let content = &bytes[..bytes.len() - blake3::OUT_LEN];
    // Every number before the rows, with a matching checksum: the list's sizes follow three centroids.
    for at in (32..36 + 4 + 3 * 8 + 3 * 4).step_by(4) {
        for number in [0, 1, 2, 17, 51, u32::MAX / 4, u32::MAX] {
            let mut hostile = content.to_vec();
            hostile[at..at + 4].copy_from_slice(&number.to_le_bytes());
            let same = hostile == content;
            let sum = blake3::hash(&hostile);
            hostile.extend(sum.as_bytes());
            let read = decode_sealed(&hostile);
            let is_centre = (40..40 + 3 * 8).contains(&at);
            assert!(same || is_centre || matches!(read, Err(VectorError::Damaged { .. })), "{number} at {at}");
        }
    }
}

#[test]
fn what_is_alive_in_no_head_lies_apart_from_what_is() {
    for backend in backends() {
        let directory = TempDir::new().unwrap();
        let mut writer = writer(directory.path(), backend);
        let model: Model = (0..600).map(|ordinal| (ordinal, vector(ordinal / 2))).collect();
        for chunk in (0..600).collect::<Vec<u32>>().chunks(25) {
            writer.append(&chunk.iter().map(|&o| (Ordinal::new(o), vector(o / 2))).collect::<Vec<_>>()).unwrap();
        }
        let before = writer.set();
        let hot: RoaringBitmap = (0..600).filter(|ordinal| ordinal % 11 == 0).collect();
        while writer.tend(&hot, Urgency::Awaited).unwrap() != Tended::Idle {}
        for sealed in &writer.segments.sealed {
            let cold = sealed.ordinals.len() - sealed.ordinals.intersection_len(&hot);
            assert!(cold == 0 || cold == sealed.ordinals.len(), "{cold} cold ones of {}", sealed.ordinals.len());
        }
        check_set(&writer.set(), &model, backend);
        check_set(&before, &model, backend);
        assert_eq!(writer.set().clustered() > 0, backend != Backend::Flat, "the engine decides on lists");
        check_set(&VectorReader::open_with(directory.path(), SHAPE, backend).unwrap().set(), &model, backend);
        // Nothing is left to do, and later rows are appended after it.
        writer.append(&[(Ordinal::new(600), vector(300))]).unwrap();
        assert_eq!(writer.tend(&hot, Urgency::Awaited).unwrap(), Tended::Idle);
        let model: Model = (0..=600).map(|ordinal| (ordinal, vector(ordinal / 2))).collect();
        drop(writer);
        check_set(&self::writer(directory.path(), backend).set(), &model, backend);
    }
}

#[test]
fn rows_that_come_while_the_tail_is_sealed_stay_and_put_it_off_for_a_while_only() {
    for backend in backends() {
        let directory = TempDir::new().unwrap();
        let mut writer = VectorWriter::open_with(directory.path(), SHAPE, backend, 400).unwrap();
        let mut model = Model::new();
        let mut append = |writer: &mut VectorWriter, count: u32| {
            let first = model.len() as u32;
            let rows: Vec<_> = (first..first + count).map(|ordinal| (Ordinal::new(ordinal), vector(ordinal))).collect();
            writer.append(&rows).unwrap();
            model.extend(rows.into_iter().map(|(ordinal, vector)| (ordinal.get(), vector)));
        };
        append(&mut writer, 150);
        // All of them have died, and one more comes at every step.
        while writer.segments.sealed.is_empty() {
            assert_ne!(writer.tend(&RoaringBitmap::new(), Urgency::CanWait).unwrap(), Tended::Idle);
            append(&mut writer, 1);
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(writer.held().len() < 399, "the tail is sealed before it is full");
        }
        writer.finish_upkeep().unwrap();
        check_set(&writer.set(), &model, backend);
        let names = |directory: &Path| -> Vec<String> {
            let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.ends_with(".tmp")).collect()
        };
        assert_eq!(names(directory.path()), Vec::<String>::new(), "what was written in vain is removed");
        drop(writer);
        check_set(&self::writer(directory.path(), backend).set(), &model, backend);
    }
}
