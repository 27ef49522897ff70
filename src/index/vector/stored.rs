//! A sealed file that is open: what lies where in it, and its parts, each read and checked when it is needed.
//!
//! In: rows, once; later a file. Out: the file's bytes; its ordinals at once; blocks of components, centres and codes on request.
//!
//! **Invariant:** nothing is interpreted before its BLAKE3 sum fits, but the few numbers that say where the first sum stands, and those
//! are checked against the length at hand. A part that was read is not kept here: memory follows what its users keep.
//!
//! ```text
//! "TMVSEAL1" 3:u32 dimensions:u32 model[16] count:u32 kind:u32 blocks:u32 bitmap:u32     48 bytes, little endian
//! sum[32]     BLAKE3 of these bytes and of the directory
//! directory   blocks × (rows:u32 sum[32]) · of kind 1: sum of the centres[32], sum of the codes[32]
//!             the ordinals as a bitmap (RoaringFormatSpec) · count × ordinal:u32, block after block, ascending in each
//! kind 1      blocks × dimensions × f16 centres · the codes of all rows (`codes.rs`)
//! components  block after block, each with its sum in the directory
//! ```
//!
//! Kind 0 is rows in one piece, in blocks of some 64 KiB, ascending throughout; kind 1 is rows in lists, a block a list. The file stays
//! open, so that it can be read to the end where its name was removed meanwhile.

use super::clustered::ClusterRows;
use super::codes::Codes;
use super::format::{
    HEAD, OTHER_LENGTH, SEALED_HEAD, SEALED_MAGIC, STORED, SealedRows, Shape, check_head, head, number,
    pull_components, pull_numbers, push_components, push_numbers,
};
use super::{VectorError, files};
use half::f16;
use roaring::RoaringBitmap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes in front of the directory's sum, and behind it.
const SUM_AT: usize = SEALED_HEAD + 12;
const FIXED: usize = SUM_AT + SUM;
const SUM: usize = blake3::OUT_LEN;
/// Bytes of a block in the directory.
const BLOCK_BYTES: usize = 4 + SUM;
/// About so many bytes of components make a block where there are no lists: what a search reads to look at one row.
const BLOCK_SIZE: usize = 64 << 10;

const IN_ONE_PIECE: u32 = 0;
const IN_LISTS: u32 = 1;

type Sum = [u8; SUM];

/// A sealed file that is open.
pub(super) struct StoredFile {
    file: File,
    path: PathBuf,
    shape: Shape,
    bitmap: RoaringBitmap,
    /// The first row of each block, and behind them the number of rows.
    starts: Vec<u32>,
    sums: Vec<Sum>,
    lists: Option<Lists>,
    /// Where the components begin.
    components_at: u64,
}

/// What lies in front of the components of rows in lists.
struct Lists {
    centres: Sum,
    codes: Sum,
    centres_at: u64,
    codes_at: u64,
}

impl StoredFile {
    /// Opens a file whose format is known to be this one, or a later one; returns its rows' ordinals, block after block, beside it.
    pub(super) fn open(file: File, length: u64, shape: Shape, path: &Path) -> Result<(Self, Vec<u32>), VectorError> {
        let damaged = |reason: &str| VectorError::damaged(path, reason);
        if length < FIXED as u64 {
            return Err(damaged("it is too short"));
        }
        let fixed = read(&file, path, 0, FIXED)?;
        let field = |at: usize| number(&fixed[SEALED_HEAD + at..]) as usize;
        let (count, kind, blocks, bitmap_bytes) = (number(&fixed[HEAD..]) as usize, field(0), field(4), field(8));
        let in_lists = kind == IN_LISTS as usize;
        // Each is below 2³², and the bytes of one are few: no sum of them overflows.
        let directory = blocks * BLOCK_BYTES + if in_lists { 2 * SUM } else { 0 } + bitmap_bytes + 4 * count;
        if (FIXED + directory) as u64 > length {
            return Err(damaged(OTHER_LENGTH));
        }
        let directory = read(&file, path, FIXED as u64, directory)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&fixed[..SUM_AT]).update(&directory);
        if hasher.finalize().as_bytes()[..] != fixed[SUM_AT..] {
            return Err(damaged("the BLAKE3 sum of its directory does not fit"));
        }
        let format = check_head(&fixed, SEALED_MAGIC, shape, path)?;
        if format != STORED || kind > IN_LISTS as usize {
            return Err(VectorError::OtherFormat { path: path.into(), found: format });
        }
        let (in_blocks, rest) = directory.split_at(blocks * BLOCK_BYTES);
        let (of_lists, rest) = rest.split_at(if in_lists { 2 * SUM } else { 0 });
        let (bitmap, ordinals) = rest.split_at(bitmap_bytes);
        let (mut starts, mut sums, mut rows) = (vec![0], Vec::with_capacity(blocks), 0_usize);
        for block in in_blocks.chunks_exact(BLOCK_BYTES) {
            rows += number(block) as usize;
            starts.push(u32::try_from(rows).map_err(|_| damaged(OTHER_LENGTH))?);
            sums.push(sum_in(&block[4..]));
        }
        let bitmap = RoaringBitmap::deserialize_from(bitmap).map_err(|_| damaged("its bitmap cannot be parsed"))?;
        let ordinals = pull_numbers(ordinals);
        if rows != count || count == 0 || bitmap.len() != count as u64 {
            return Err(damaged("its blocks do not hold its rows"));
        }
        let is_sorted = |range: &[u32]| {
            ordinals[range[0] as usize..range[1] as usize].is_sorted_by(|a, b| a < b) && range[0] < range[1]
        };
        if !starts.windows(2).all(is_sorted) || !in_lists && !ordinals.is_sorted_by(|a, b| a < b) {
            return Err(damaged("its ordinals do not ascend"));
        }
        let centres_at = (FIXED + directory.len()) as u64;
        let codes_at = centres_at + (2 * blocks * shape.components()) as u64;
        let lists = in_lists.then(|| Lists {
            centres: sum_in(of_lists),
            codes: sum_in(&of_lists[SUM..]),
            centres_at,
            codes_at,
        });
        let code_bytes = count as u64 * Codes::row_bytes(shape.components()) as u64;
        let components_at = if in_lists { codes_at + code_bytes } else { centres_at };
        if components_at + count as u64 * 2 * shape.components() as u64 != length {
            return Err(damaged(OTHER_LENGTH));
        }
        Ok((Self { file, path: path.into(), shape, bitmap, starts, sums, lists, components_at }, ordinals))
    }

    pub(super) const fn is_in_lists(&self) -> bool {
        self.lists.is_some()
    }

    pub(super) const fn bitmap(&self) -> &RoaringBitmap {
        &self.bitmap
    }

    /// Returns the number of blocks.
    pub(super) const fn blocks(&self) -> usize {
        self.sums.len()
    }

    /// Returns the rows of a block, as places in the file.
    pub(super) fn rows_of(&self, block: usize) -> Range<usize> {
        self.starts[block] as usize..self.starts[block + 1] as usize
    }

    /// Returns the block in which a row lies.
    pub(super) fn block_of(&self, row: usize) -> usize {
        self.starts.partition_point(|&start| start as usize <= row) - 1
    }

    /// Reads the components of a block into `bytes`, once they are proven.
    pub(super) fn read_block(&self, block: usize, bytes: &mut Vec<u8>) -> Result<(), VectorError> {
        let (rows, width) = (self.rows_of(block), 2 * self.shape.components());
        bytes.resize(rows.len() * width, 0);
        let at = self.components_at + (rows.start * width) as u64;
        self.file.read_exact_at(bytes, at).map_err(VectorError::io("read", &self.path))?;
        self.prove(bytes, &self.sums[block])
    }

    /// Returns the components of some blocks.
    pub(super) fn components(&self, blocks: Range<usize>) -> Result<Vec<f16>, VectorError> {
        let rows = self.starts[blocks.end] - self.starts[blocks.start];
        let (mut bytes, mut components) = (Vec::new(), Vec::with_capacity(rows as usize * self.shape.components()));
        for block in blocks {
            self.read_block(block, &mut bytes)?;
            pull_components(&bytes, &mut components);
        }
        self.are_finite(&components)?;
        Ok(components)
    }

    /// Returns the centres of all lists; none where there are no lists.
    pub(super) fn centres(&self) -> Result<Vec<f16>, VectorError> {
        let Some(lists) = &self.lists else { return Ok(Vec::new()) };
        let bytes = read(&self.file, &self.path, lists.centres_at, (lists.codes_at - lists.centres_at) as usize)?;
        self.prove(&bytes, &lists.centres)?;
        let mut centres = Vec::with_capacity(bytes.len() / 2);
        pull_components(&bytes, &mut centres);
        self.are_finite(&centres)?;
        Ok(centres)
    }

    /// Returns the codes of all rows in lists.
    pub(super) fn codes(&self) -> Result<Codes, VectorError> {
        let Some(lists) = &self.lists else { return Ok(Codes::default()) };
        let bytes = read(&self.file, &self.path, lists.codes_at, (self.components_at - lists.codes_at) as usize)?;
        self.prove(&bytes, &lists.codes)?;
        Ok(Codes::from_bytes(&bytes, self.shape.components(), self.starts.clone()))
    }

    /// Reads everything once and keeps nothing.
    pub(super) fn check(&self) -> Result<(), VectorError> {
        let mut bytes = Vec::new();
        (0..self.blocks()).try_for_each(|block| self.read_block(block, &mut bytes))?;
        self.centres()?;
        self.codes().map(drop)
    }

    fn prove(&self, bytes: &[u8], sum: &Sum) -> Result<(), VectorError> {
        if blake3::hash(bytes).as_bytes() == sum {
            return Ok(());
        }
        Err(VectorError::damaged(&self.path, "the BLAKE3 sum of a block does not fit"))
    }

    /// Refuses components that are no numbers: no engine is to see them.
    pub(super) fn are_finite(&self, components: &[f16]) -> Result<(), VectorError> {
        if super::rows::are_finite(components) {
            return Ok(());
        }
        Err(VectorError::damaged(&self.path, "a component is not finite"))
    }
}

fn read(file: &File, path: &Path, at: u64, length: usize) -> Result<Vec<u8>, VectorError> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).map_err(VectorError::io("read", path))?;
    Ok(bytes)
}

fn sum_in(bytes: &[u8]) -> Sum {
    let mut sum = [0; SUM];
    sum.copy_from_slice(&bytes[..SUM]);
    sum
}

/// The ordinals and the components of a block.
type Part<'a> = (&'a [u32], &'a [f16]);

/// Returns the bytes of a sealed file.
pub(super) fn encode(shape: Shape, rows: &SealedRows) -> Vec<u8> {
    let (parts, lists): (Vec<Part<'_>>, Option<&ClusterRows>) = match rows {
        SealedRows::Flat(rows) => {
            let rows_a_block = (BLOCK_SIZE / (2 * shape.components())).max(1);
            let components = rows.components().chunks(rows_a_block * shape.components());
            (rows.ordinals().chunks(rows_a_block).zip(components).collect(), None)
        }
        SealedRows::Clustered(rows) => {
            (rows.lists().iter().map(|list| (list.ordinals(), list.components())).collect(), Some(rows))
        }
    };
    let mut bitmap = rows.bitmap();
    bitmap.optimize();
    let mut bytes = head(SEALED_MAGIC, STORED, shape);
    let kind = if lists.is_some() { IN_LISTS } else { IN_ONE_PIECE };
    push_numbers(&mut bytes, &[rows.len() as u32, kind, parts.len() as u32, bitmap.serialized_size() as u32]);
    bytes.resize(FIXED, 0);
    for (ordinals, _) in &parts {
        push_numbers(&mut bytes, &[ordinals.len() as u32]);
        bytes.resize(bytes.len() + SUM, 0);
    }
    let lists_at = bytes.len();
    bytes.resize(lists_at + if lists.is_some() { 2 * SUM } else { 0 }, 0);
    bitmap.serialize_into(&mut bytes).expect("memory takes every byte");
    parts.iter().for_each(|(ordinals, _)| push_numbers(&mut bytes, ordinals));
    let end = bytes.len();
    bytes.reserve(rows.len() * (Codes::row_bytes(shape.components()) + 2 * shape.components()));
    let seal = |bytes: &mut Vec<u8>, start: usize, sum_at: usize| {
        let sum = blake3::hash(&bytes[start..]);
        bytes[sum_at..sum_at + SUM].copy_from_slice(sum.as_bytes());
    };
    if let Some(lists) = lists {
        push_components(&mut bytes, lists.centres());
        seal(&mut bytes, end, lists_at);
        let start = bytes.len();
        Codes::new(lists).push_bytes(&mut bytes);
        seal(&mut bytes, start, lists_at + SUM);
    }
    for (block, (_, components)) in parts.iter().enumerate() {
        let start = bytes.len();
        push_components(&mut bytes, components);
        seal(&mut bytes, start, FIXED + block * BLOCK_BYTES + 4);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..SUM_AT]).update(&bytes[FIXED..end]);
    bytes[SUM_AT..FIXED].copy_from_slice(hasher.finalize().as_bytes());
    bytes
}

/// Writes rows as a sealed file, durably, under its temporary name, and opens it.
pub(super) fn write_beside(
    path: &Path,
    shape: Shape,
    rows: &SealedRows,
) -> Result<(StoredFile, Vec<u32>), VectorError> {
    files::write_beside(path, &encode(shape, rows))?;
    let (file, length) = files::open(&files::temporary_path(path))?;
    StoredFile::open(file, length, shape, path)
}
