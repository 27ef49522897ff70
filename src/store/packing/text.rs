//! Texts as bytes: as they are, or compressed, by themselves or with a dictionary of the store.
//!
//! In: texts. Out: their bytes, and back.
//!
//! **Invariant:** unpacking gives what was packed, or nothing. What is packed with a dictionary says which one.
//!
//! ```text
//! text   00 UTF-8 · 01 size:u32 zstd frame · 02 dictionary:LEB128 zstd frame without its first four bytes, which all frames have
//! ```

use super::varint;
use std::cell::RefCell;
use std::sync::Arc;
use zstd::zstd_safe::{CCtx, CDict, DCtx, DDict, compress_bound, get_frame_content_size};

/// Texts from this size on are compressed by themselves: below, the frame costs more than it saves.
const COMPRESS_BYTES: usize = 512;
/// Texts from this size on are compressed with a dictionary.
const COMPRESS_WITH_DICTIONARY_BYTES: usize = 16;
/// The largest text that is unpacked; the largest honest one is bounded by the rules' `max_bytes`.
const TEXT_LIMIT: usize = 256 << 20;
/// What every zstd frame begins with (RFC 8878, section 3.1.1).
const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// How hard texts are compressed by themselves, and with a dictionary.
const LEVEL: i32 = 1;
const DICTIONARY_LEVEL: i32 = 3;

const RAW: u8 = 0;
const ZSTD: u8 = 1;
const DICTIONARY: u8 = 2;

/// A dictionary that texts are packed with.
pub(in crate::store) struct Packer {
    number: u32,
    prepared: CDict<'static>,
}

impl Packer {
    /// Prepares the dictionary that has this number in the store; nothing where it is none.
    pub(in crate::store) fn new(number: u32, dictionary: &[u8]) -> Option<Self> {
        CDict::try_create(dictionary, DICTIONARY_LEVEL).map(|prepared| Self { number, prepared })
    }
}

/// A dictionary that texts are unpacked with.
pub(in crate::store) struct Unpacker(DDict<'static>);

impl Unpacker {
    /// Prepares a dictionary; nothing where it is none.
    pub(in crate::store) fn new(dictionary: &[u8]) -> Option<Self> {
        DDict::try_create(dictionary).map(Self)
    }
}

thread_local! {
    /// Setting these up takes longer than most texts do.
    static COMPRESSOR: RefCell<Option<CCtx<'static>>> = RefCell::new(CCtx::try_create());
    static DECOMPRESSOR: RefCell<Option<DCtx<'static>>> = RefCell::new(DCtx::try_create());
    /// A frame with its first bytes.
    static FRAME: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Packs a text: compressed where that is smaller, else the bytes themselves.
pub(in crate::store) fn pack_text(text: &str, packer: Option<&Packer>) -> Vec<u8> {
    let packed = match packer {
        Some(packer) if text.len() >= COMPRESS_WITH_DICTIONARY_BYTES => compress_with(text.as_bytes(), packer),
        None if text.len() >= COMPRESS_BYTES => compress(text.as_bytes()),
        _ => None,
    };
    packed.filter(|packed| packed.len() <= text.len()).unwrap_or_else(|| [&[RAW], text.as_bytes()].concat())
}

fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let size = u32::try_from(bytes.len()).ok()?;
    let mut frame = Vec::with_capacity(compress_bound(bytes.len()));
    COMPRESSOR.with_borrow_mut(|context| context.as_mut()?.compress(&mut frame, bytes, LEVEL).ok())?;
    Some([&[ZSTD], &size.to_le_bytes()[..], &frame].concat())
}

fn compress_with(bytes: &[u8], packer: &Packer) -> Option<Vec<u8>> {
    let mut frame = Vec::with_capacity(compress_bound(bytes.len()));
    let mut compress = |context: &mut CCtx<'_>| context.compress_using_cdict(&mut frame, bytes, &packer.prepared).ok();
    COMPRESSOR.with_borrow_mut(|context| compress(context.as_mut()?))?;
    let mut packed = Vec::with_capacity(frame.len());
    packed.push(DICTIONARY);
    varint::write(&mut packed, u64::from(packer.number));
    packed.extend_from_slice(frame.strip_prefix(&MAGIC)?);
    Some(packed)
}

/// Returns the text that [`pack_text`] packed; `dictionary` gives the one of a number.
pub(in crate::store) fn unpack_text(
    packed: &[u8],
    dictionary: impl FnOnce(u32) -> Option<Arc<Unpacker>>,
) -> Option<String> {
    let mut bytes = Vec::new();
    unpack_bytes(packed, dictionary, &mut bytes)?;
    String::from_utf8(bytes).ok()
}

/// As [`unpack_text`], the bytes in place of what `to` holds.
pub(in crate::store) fn unpack_bytes(
    packed: &[u8],
    dictionary: impl FnOnce(u32) -> Option<Arc<Unpacker>>,
    to: &mut Vec<u8>,
) -> Option<()> {
    to.clear();
    match packed.split_first()? {
        (&RAW, bytes) => to.extend_from_slice(bytes),
        (&ZSTD, rest) => {
            let (size, frame) = rest.split_first_chunk::<4>()?;
            to.reserve((u32::from_le_bytes(*size) as usize).min(TEXT_LIMIT));
            DECOMPRESSOR.with_borrow_mut(|context| context.as_mut()?.decompress(to, frame).ok())?;
        }
        (&DICTIONARY, mut rest) => {
            let unpacker = dictionary(varint::read_u32(&mut rest)?)?;
            FRAME.with_borrow_mut(|frame| {
                frame.clear();
                frame.extend_from_slice(&MAGIC);
                frame.extend_from_slice(rest);
                let size = usize::try_from(get_frame_content_size(frame).ok()??).ok()?;
                to.reserve(Some(size).filter(|size| *size <= TEXT_LIMIT)?);
                let mut unpack = |context: &mut DCtx<'_>| context.decompress_using_ddict(to, frame, &unpacker.0).ok();
                DECOMPRESSOR.with_borrow_mut(|context| unpack(context.as_mut()?))
            })?;
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;
    use crate::store::dictionaries::train;
    use proptest::prelude::*;

    /// Returns a dictionary of texts about one thing, for both ways.
    fn dictionary() -> (Packer, Arc<Unpacker>) {
        let texts: Vec<String> = (0..2000).map(sentence).collect();
        let dictionary = train(texts.iter().map(String::as_str)).unwrap();
        (Packer::new(3, &dictionary).unwrap(), Arc::new(Unpacker::new(&dictionary).unwrap()))
    }

    fn sentence(n: u32) -> String {
        format!("pub fn wheel_{}(tide: u{}) -> Turns {{ self.sluice({n}).open() }}", n % 7, n % 5 * 8)
    }

    #[test]
    fn texts_come_back_whatever_their_size() {
        let (packer, unpacker) = dictionary();
        for text in ["", "short", &sentence(9), &*"long enough to be packed ".repeat(100), &"世界".repeat(500)] {
            for packer in [None, Some(&packer)] {
                let packed = pack_text(text, packer);
                let found = |number| (number == 3).then(|| unpacker.clone());
                assert_eq!(unpack_text(&packed, found).as_deref(), Some(text));
                if packed[0] == DICTIONARY {
                    assert_eq!(unpack_text(&packed, |_| None), None, "its dictionary is gone");
                }
            }
        }
        assert!(pack_text(&sentence(9), Some(&packer)).len() * 2 < sentence(9).len());
        let damaged = [&[][..], &[9, 1], &[RAW, 0xff], &[ZSTD, 255, 255, 255], &[ZSTD, 255, 255, 255, 255, 1]];
        for damaged in damaged {
            assert_eq!(unpack_text(damaged, |_| None), None);
        }
    }

    proptest! {
        #![proptest_config(cases(64))]
        #[test]
        fn damaged_bytes_give_a_text_or_nothing(n: u32, at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let (packer, unpacker) = dictionary();
            let mut packed = pack_text(&sentence(n), Some(&packer));
            let at = at.index(packed.len());
            packed[at] = byte;
            if cut {
                packed.truncate(at);
            }
            let _ = unpack_text(&packed, |_| Some(unpacker.clone()));
        }
    }
}
