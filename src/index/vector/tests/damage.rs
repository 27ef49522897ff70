//! After a crash or a wrong byte: torn tails, half-sealed files, other formats.

use super::*;

#[test]
fn a_tail_cut_at_any_byte_keeps_its_whole_frames() {
    let original = TempDir::new().unwrap();
    let mut writer = writer(original.path(), Backend::Flat);
    let mut ends = Vec::new();
    for ordinal in 0..4_u32 {
        writer.append(&[(Ordinal::new(ordinal), vector(ordinal))]).unwrap();
        ends.push(fs::metadata(tail_file(original.path()).unwrap()).unwrap().len());
    }
    let tail = tail_file(original.path()).unwrap();
    let content = fs::read(&tail).unwrap();
    for cut in 0..=content.len() {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join(tail.file_name().unwrap()), &content[..cut]).unwrap();
        let whole = ends.iter().filter(|&&end| end <= cut as u64).count() as u32;
        let model: Model = (0..whole).map(|ordinal| (ordinal, vector(ordinal))).collect();
        match VectorReader::open_with(directory.path(), SHAPE, Backend::Flat) {
            Ok(reader) => check_set(&reader.set(), &model, Backend::Flat),
            Err(error) => assert!(cut < format::TAIL_HEADER && matches!(error, VectorError::Damaged { .. }), "{cut}"),
        }
        let mut writer = self::writer(directory.path(), Backend::Flat);
        check_set(&writer.set(), &model, Backend::Flat);
        assert_eq!(writer.healed().set_aside.len(), usize::from(cut < format::TAIL_HEADER), "{cut}");
        // The next rows follow the kept ones.
        let expected: RoaringBitmap = (0..4).collect();
        let again: Vec<(Ordinal, Vector)> =
            writer.set().missing(&expected).into_iter().map(|ordinal| (ordinal, vector(ordinal.get()))).collect();
        writer.append(&again).unwrap();
        let model: Model = (0..4).map(|ordinal| (ordinal, vector(ordinal))).collect();
        let reader = VectorReader::open_with(directory.path(), SHAPE, Backend::Flat).unwrap();
        check_set(&reader.set(), &model, Backend::Flat);
        drop(writer);
        check_set(&self::writer(directory.path(), Backend::Flat).set(), &model, Backend::Flat);
    }
}

/// Bytes of a sealed file of [`SEAL`] rows, whose ordinals are one run.
const SEALED_BYTES: usize = 80 + 36 + 15 + SEAL * 4 + SEAL * 8;

#[test]
fn a_file_with_a_wrong_byte_is_named_set_aside_and_made_again() {
    let rows: Vec<(Ordinal, Vector)> = (0..15).map(|ordinal| (Ordinal::new(ordinal), vector(ordinal))).collect();
    let model: Model = (0..15).map(|ordinal| (ordinal, vector(ordinal))).collect();
    let expected: RoaringBitmap = (0..15).collect();
    for (name, step) in [("seg-00000000.tmv", 17), ("seg-00000001.tmv", 17), ("tail-00000002.tmv", 3)] {
        let length = if name.starts_with("tail") { 40 + 12 + 3 * 12 } else { SEALED_BYTES };
        for at in (0..length).step_by(step) {
            let directory = TempDir::new().unwrap();
            let mut writer = writer(directory.path(), Backend::Flat);
            writer.append(&rows[..14]).unwrap();
            writer.append(&rows[14..]).unwrap();
            drop(writer);
            let path = directory.path().join(name);
            let mut content = fs::read(&path).unwrap();
            assert!(name.starts_with("tail") || content.len() == length, "{} bytes", content.len());
            content[at] ^= 0x10;
            fs::write(&path, content).unwrap();
            // What opening does not read is checked by the first search that reads it, and by every later one.
            let noticed = |error: &VectorError| assert!(error.to_string().contains(name), "{error}");
            match VectorReader::open_with(directory.path(), SHAPE, Backend::Flat) {
                Ok(reader) if reader.set().missing(&expected).is_empty() => {
                    for _ in 0..3 {
                        let question = vector(3).to_f32();
                        let found = reader.set().search(&expected, &question, 3, Reach::Near, &Scrambled);
                        noticed(&found.expect_err("a wrong byte goes unnoticed"));
                    }
                }
                Ok(_) => assert!(name.starts_with("tail"), "{name} {at}: rows are missing"),
                Err(error) => noticed(&error),
            }
            let mut writer = self::writer(directory.path(), Backend::Flat);
            let again: Vec<(Ordinal, Vector)> =
                writer.set().missing(&expected).into_iter().map(|o| (o, vector(o.get()))).collect();
            assert!(!again.is_empty() && *writer.healed() != Healed::default());
            writer.append(&again).unwrap();
            check_set(&writer.set(), &model, Backend::Flat);
            drop(writer);
            check_set(
                &VectorReader::open_with(directory.path(), SHAPE, Backend::Flat).unwrap().set(),
                &model,
                Backend::Flat,
            );
            let writer = self::writer(directory.path(), Backend::Flat);
            assert_eq!(*writer.healed(), Healed::default(), "healing is done once");
            check_set(&writer.set(), &model, Backend::Flat);
        }
    }
}

#[test]
fn a_crash_between_the_steps_of_sealing_neither_loses_nor_doubles_rows() {
    let directory = TempDir::new().unwrap();
    let mut writer = writer(directory.path(), Backend::Flat);
    writer.append(&(0..5).map(|o| (Ordinal::new(o), vector(o))).collect::<Vec<_>>()).unwrap();
    let tail = tail_file(directory.path()).unwrap();
    let five = fs::read(&tail).unwrap();
    writer.append(&[(Ordinal::new(5), vector(5))]).unwrap();
    drop(writer);
    let sealed = directory.path().join("seg-00000000.tmv");
    assert!(sealed.exists() && !tail.exists());
    let content = fs::read(&sealed).unwrap();
    let model = |rows: u32| (0..rows).map(|ordinal| (ordinal, vector(ordinal))).collect::<Model>();

    // Sealed, and the tail not yet removed.
    fs::write(&tail, &five).unwrap();
    let reader = VectorReader::open_with(directory.path(), SHAPE, Backend::Flat).unwrap();
    check_set(&reader.set(), &model(6), Backend::Flat);
    check_set(&self::writer(directory.path(), Backend::Flat).set(), &model(6), Backend::Flat);
    assert!(!tail.exists());

    // Written under the temporary name, and not yet renamed.
    fs::remove_file(&sealed).unwrap();
    fs::write(&tail, &five).unwrap();
    let temporary = directory.path().join("seg-00000000.tmv.tmp");
    fs::write(&temporary, &content[..content.len() / 2]).unwrap();
    let reader = VectorReader::open_with(directory.path(), SHAPE, Backend::Flat).unwrap();
    check_set(&reader.set(), &model(5), Backend::Flat);
    check_set(&self::writer(directory.path(), Backend::Flat).set(), &model(5), Backend::Flat);
    assert!(!temporary.exists());
}

#[test]
fn another_model_another_format_and_another_vector_are_refused_by_name() {
    let directory = TempDir::new().unwrap();
    let mut writer = writer(directory.path(), Backend::Flat);
    writer.append(&(0..7).map(|o| (Ordinal::new(o), vector(o))).collect::<Vec<_>>()).unwrap();
    let conflict = writer.append(&[(Ordinal::new(8), vector(8)), (Ordinal::new(3), vector(4))]);
    assert!(matches!(conflict, Err(VectorError::Conflict { ordinal }) if ordinal.get() == 3));
    let twins = writer.append(&[(Ordinal::new(9), vector(8)), (Ordinal::new(9), vector(4))]);
    assert!(matches!(twins, Err(VectorError::Conflict { ordinal }) if ordinal.get() == 9));
    let odd = writer.append(&[(Ordinal::new(9), Vector::new(&[1.0]).unwrap())]);
    assert!(matches!(odd, Err(VectorError::OtherDimensions { found: 1, expected: 4 })));
    assert_eq!(writer.set().len(), 7);
    drop(writer);

    let model = Shape { model: ModelId::from_words([1, 1]), ..SHAPE };
    for shape in [model, Shape { dimensions: 5, ..SHAPE }] {
        let backend = Backend::Flat;
        assert!(matches!(
            VectorReader::open_with(directory.path(), shape, backend),
            Err(VectorError::OtherModel { .. })
        ));
        let writer = VectorWriter::open_with(directory.path(), shape, backend, SEAL);
        assert!(matches!(writer, Err(VectorError::OtherModel { .. })));
    }
    let path = directory.path().join("seg-00000000.tmv");
    let mut content = fs::read(&path).unwrap();
    content[8] = 4;
    let directory_end = content.len() - SEAL * 8;
    let sum = blake3::Hasher::new().update(&content[..48]).update(&content[80..directory_end]).finalize();
    content[48..80].copy_from_slice(sum.as_bytes());
    fs::write(&path, content).unwrap();
    let refused = VectorWriter::open_with(directory.path(), SHAPE, Backend::Flat, SEAL).err().unwrap();
    assert!(matches!(refused, VectorError::OtherFormat { found: 4, .. }), "{refused}");
    assert!(path.exists(), "what a newer release wrote is left alone");
}
