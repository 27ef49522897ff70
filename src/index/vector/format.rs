//! The bytes of the two kinds of vector file.
//!
//! In: rows. Out: bytes, and rows again once the bytes are verified.
//!
//! **Invariant:** nothing is interpreted before its checksum fits, except the few numbers that give the position of the checksum,
//! and those are compared with the actual length.
//!
//! ```text
//! sealed file   "TMVSEAL1", format u32, dimensions u32, model 16 bytes, count u32     36 bytes
//!   format 1    count × u32 ordinals (ascending), count × dimensions × f16            BLAKE3 of all that, 32 bytes
//!   format 2    lists u32, lists × dimensions × f16 centres, lists × u32 rows of each,
//!               then the ordinals of list after list (ascending in each), their components in the same order, and the sum
//! tail file     "TMVTAIL1", format u32, dimensions u32, model 16 bytes                32 bytes, then 8 of their BLAKE3
//!               frames: count u32, first 8 bytes of the BLAKE3 of count, ordinals and components; ordinals; components
//! ```
//!
//! All numbers are little endian. A frame that ends beyond the file, or a last frame whose checksum does not fit, is torn: it was
//! never published. Damage before other frames is a different case.

use super::VectorError;
use super::clustered::ClusterRows;
use super::rows::Rows;
use dataflows::data::Fingerprint;
use half::f16;
use roaring::RoaringBitmap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The format of tails and of sealed files whose rows are in one block.
pub(super) const FORMAT: u32 = 1;
/// The format of sealed files whose rows are in lists.
pub(super) const CLUSTERED: u32 = 2;

/// Bytes of a tail file's header.
pub(super) const TAIL_HEADER: usize = HEAD + CHECKSUM;

const SEALED_MAGIC: &[u8; 8] = b"TMVSEAL1";
const TAIL_MAGIC: &[u8; 8] = b"TMVTAIL1";
/// Bytes of magic, format, dimensions and model.
const HEAD: usize = 32;
const CHECKSUM: usize = 8;
const FRAME_HEAD: usize = 4 + CHECKSUM;
/// Bytes of a sealed file before its lists or rows.
const SEALED_HEAD: usize = HEAD + 4;
/// A sealed file is read in pieces of this size, which stay in the processor's cache from the file to the rows.
const PIECE: usize = 1 << 18;
const OTHER_LENGTH: &str = "its length does not fit its count";

/// The common properties of a store's vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Components of each vector.
    pub dimensions: u32,
    /// The fingerprint of the model that makes them.
    pub model: Fingerprint,
}

impl Shape {
    /// Returns the number of components as a length.
    pub(super) const fn components(self) -> usize {
        self.dimensions as usize
    }

    /// Returns the bytes that one row takes in a file.
    pub(super) const fn row_bytes(self) -> usize {
        4 + 2 * self.components()
    }

    /// Returns the most bytes of a tail of `rows` rows, if each has its own frame.
    pub(super) const fn tail_bytes(self, rows: usize) -> usize {
        TAIL_HEADER + rows * (self.row_bytes() + FRAME_HEAD)
    }
}

/// The rows of a sealed file.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum SealedRows {
    /// In one block.
    Flat(Rows),
    /// In IVF lists, each with its centroid.
    Clustered(ClusterRows),
}

impl SealedRows {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Flat(rows) => rows.len(),
            Self::Clustered(rows) => rows.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn bitmap(&self) -> RoaringBitmap {
        match self {
            Self::Flat(rows) => rows.bitmap(),
            Self::Clustered(rows) => rows.bitmap().clone(),
        }
    }

    /// Removes the rows that `held` has, and adds the rest to it.
    pub(super) fn admit(self, held: &mut RoaringBitmap) -> Self {
        match self {
            Self::Flat(rows) => Self::Flat(rows.admit(held)),
            Self::Clustered(rows) => Self::Clustered(rows.admit(held)),
        }
    }

    /// Removes the rows of these ordinals.
    pub(super) fn without(self, ordinals: &RoaringBitmap) -> Self {
        self.admit(&mut ordinals.clone())
    }

    /// Returns the rows in one block.
    pub(super) fn into_rows(self) -> Rows {
        match self {
            Self::Flat(rows) => rows,
            Self::Clustered(rows) => rows.rows(),
        }
    }
}

/// How the frames of a tail end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// With a whole frame.
    Whole,
    /// In the middle of a frame, or in an incomplete last frame.
    Torn,
    /// In a wrong frame with others after it.
    Damaged,
}

fn head(magic: &[u8; 8], format: u32, shape: Shape) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend(format.to_le_bytes());
    bytes.extend(shape.dimensions.to_le_bytes());
    bytes.extend(shape.model.to_bytes());
    bytes
}

/// Compares a checked head with the expected one, and returns its format.
fn check_head(bytes: &[u8], magic: &[u8; 8], shape: Shape, path: &Path) -> Result<u32, VectorError> {
    if bytes[..8] != magic[..] {
        return Err(VectorError::damaged(path, "it does not start as a vector file"));
    }
    let found = number(&bytes[8..]);
    if found != FORMAT && (found != CLUSTERED || magic != SEALED_MAGIC) {
        return Err(VectorError::OtherFormat { path: path.into(), found });
    }
    let found_dimensions = number(&bytes[12..]);
    let mut model = [0; 16];
    model.copy_from_slice(&bytes[16..HEAD]);
    let found_model = Fingerprint::from_bytes(model);
    if (found_dimensions, found_model) != (shape.dimensions, shape.model) {
        return Err(VectorError::OtherModel { path: path.into(), found_model, found_dimensions, expected: shape });
    }
    Ok(found)
}

/// Returns the bytes of a sealed file.
pub(super) fn encode_sealed(shape: Shape, rows: &SealedRows) -> Vec<u8> {
    let format = match rows {
        SealedRows::Flat(_) => FORMAT,
        SealedRows::Clustered(_) => CLUSTERED,
    };
    let mut bytes = head(SEALED_MAGIC, format, shape);
    bytes.extend((rows.len() as u32).to_le_bytes());
    let parts = match rows {
        SealedRows::Flat(rows) => std::slice::from_ref(rows),
        SealedRows::Clustered(clusters) => {
            bytes.extend((clusters.lists().len() as u32).to_le_bytes());
            bytes.extend(clusters.centres().iter().flat_map(|component| component.to_le_bytes()));
            bytes.extend(clusters.lists().iter().flat_map(|rows| (rows.len() as u32).to_le_bytes()));
            clusters.lists()
        }
    };
    bytes.reserve(rows.len() * shape.row_bytes() + blake3::OUT_LEN);
    push_rows(&mut bytes, parts);
    let hash = blake3::hash(&bytes);
    bytes.extend(hash.as_bytes());
    bytes
}

/// Returns the rows of a sealed file of `length` bytes, once it is verified: it is read twice, and never in memory together with
/// its rows.
pub(super) fn read_sealed(
    file: &mut (impl Read + Seek),
    length: u64,
    shape: Shape,
    path: &Path,
) -> Result<SealedRows, VectorError> {
    let damaged = |reason: &str| VectorError::damaged(path, reason);
    let Some(content) = length.checked_sub(blake3::OUT_LEN as u64).filter(|content| *content >= SEALED_HEAD as u64)
    else {
        return Err(damaged("it is too short"));
    };
    if !is_whole(file, content).map_err(VectorError::io("read", path))? {
        return Err(damaged("its BLAKE3 sum does not fit"));
    }
    let body = file.seek(SeekFrom::Start(0)).map(|_| Body { file, left: content, piece: Vec::new() });
    let mut body = body.map_err(VectorError::io("read", path))?;
    let head = body.take(SEALED_HEAD).map_err(VectorError::io("read", path))?;
    let format = check_head(head, SEALED_MAGIC, shape, path)?;
    let count = number(&head[HEAD..]) as usize;
    let rows = if format == CLUSTERED {
        body.lists(count, shape).map(|rows| rows.map(SealedRows::Clustered))
    } else {
        body.rows(count, shape).map(|rows| rows.map(SealedRows::Flat))
    };
    let rows = rows.map_err(VectorError::io("read", path))?;
    rows.and_then(|rows| if rows.is_empty() { Err("it has no row") } else { Ok(rows) }).map_err(damaged)
}

/// Returns whether the first `content` bytes have the checksum that follows them.
fn is_whole(file: &mut (impl Read + Seek), content: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let (mut hasher, mut piece, mut left) = (blake3::Hasher::new(), vec![0; PIECE], content);
    while left > 0 {
        let piece = &mut piece[..left.min(PIECE as u64) as usize];
        file.read_exact(piece)?;
        hasher.update(piece);
        left -= piece.len() as u64;
    }
    let mut sum = [0; blake3::OUT_LEN];
    file.read_exact(&mut sum)?;
    Ok(hasher.finalize() == blake3::Hash::from_bytes(sum))
}

/// The unread part of a verified sealed file.
struct Body<'a, R> {
    file: &'a mut R,
    left: u64,
    piece: Vec<u8>,
}

/// The parsed value, or why the bytes are wrong.
type Found<T> = io::Result<Result<T, &'static str>>;

impl<R: Read> Body<'_, R> {
    /// Returns the next so many bytes, which must exist.
    fn take(&mut self, bytes: usize) -> io::Result<&[u8]> {
        self.piece.resize(bytes, 0);
        self.file.read_exact(&mut self.piece)?;
        self.left -= bytes as u64;
        Ok(&self.piece)
    }

    /// Whether exactly so many bytes are left.
    fn is(&self, bytes: Option<usize>) -> bool {
        bytes.is_some_and(|bytes| bytes as u64 == self.left)
    }

    /// Reads `count` numbers.
    fn numbers(&mut self, count: usize) -> io::Result<Vec<u32>> {
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            let piece = self.take(4 * (count - numbers.len()).min(PIECE / 4))?;
            numbers.extend(piece.chunks_exact(4).map(number));
        }
        Ok(numbers)
    }

    /// Reads `count` components.
    fn components(&mut self, count: usize) -> io::Result<Vec<f16>> {
        let mut components = Vec::with_capacity(count);
        while components.len() < count {
            let piece = self.take(2 * (count - components.len()).min(PIECE / 2))?;
            components.extend(piece.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])));
        }
        Ok(components)
    }

    /// Reads the rest as `count` rows.
    fn rows(&mut self, count: usize, shape: Shape) -> Found<Rows> {
        if !self.is(count.checked_mul(shape.row_bytes())) {
            return Ok(Err(OTHER_LENGTH));
        }
        let ordinals = self.numbers(count)?;
        let components = self.components(count * shape.components())?;
        Ok(Rows::from_parts(shape.components(), ordinals, components))
    }

    /// Reads the rest as `count` rows in lists.
    fn lists(&mut self, count: usize, shape: Shape) -> Found<ClusterRows> {
        if self.left < 4 {
            return Ok(Err(OTHER_LENGTH));
        }
        let lists = number(self.take(4)?) as usize;
        let heads = lists.checked_mul(2 * shape.components() + 4);
        let rows = count.checked_mul(shape.row_bytes());
        if !self.is(heads.zip(rows).and_then(|(heads, rows)| heads.checked_add(rows))) {
            return Ok(Err(OTHER_LENGTH));
        }
        let centres = self.components(lists * shape.components())?;
        // The sizes are as untrusted as the rest; if they fit, so do the products.
        let sizes = self.numbers(lists)?;
        if sizes.iter().map(|size| u64::from(*size)).sum::<u64>() != count as u64 {
            return Ok(Err(OTHER_LENGTH));
        }
        let ordinals = self.numbers(count)?;
        let (mut ordinals, mut parts) = (ordinals.as_slice(), Vec::with_capacity(lists));
        for size in sizes {
            let (own, others) = ordinals.split_at(size as usize);
            ordinals = others;
            let components = self.components(size as usize * shape.components())?;
            match Rows::from_parts(shape.components(), own.to_vec(), components) {
                Ok(rows) => parts.push(rows),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Ok(ClusterRows::from_parts(shape.components(), centres, parts))
    }
}

/// Returns the header of a new tail file.
pub(super) fn encode_tail_header(shape: Shape) -> Vec<u8> {
    let mut bytes = head(TAIL_MAGIC, FORMAT, shape);
    let sum = checksum(&[&bytes]);
    bytes.extend(sum);
    bytes
}

/// Checks the header of a tail file.
pub(super) fn check_tail_header(bytes: &[u8], shape: Shape, path: &Path) -> Result<(), VectorError> {
    if bytes.len() < TAIL_HEADER {
        return Err(VectorError::damaged(path, "it is shorter than its header"));
    }
    let (head, sum) = bytes[..TAIL_HEADER].split_at(HEAD);
    if checksum(&[head]) != sum {
        return Err(VectorError::damaged(path, "its header's checksum does not fit"));
    }
    check_head(head, TAIL_MAGIC, shape, path).map(drop)
}

/// Returns the bytes of one frame.
pub(super) fn encode_frame(shape: Shape, rows: &Rows) -> Vec<u8> {
    let mut body = Vec::with_capacity(FRAME_HEAD + rows.len() * shape.row_bytes());
    let count = (rows.len() as u32).to_le_bytes();
    body.extend(count);
    body.extend([0; CHECKSUM]);
    push_rows(&mut body, std::slice::from_ref(rows));
    let sum = checksum(&[&count, &body[FRAME_HEAD..]]);
    body[4..FRAME_HEAD].copy_from_slice(&sum);
    body
}

/// Returns the rows of the whole frames at the start of `bytes`, how many bytes they take, and how they end.
pub(super) fn decode_frames(bytes: &[u8], shape: Shape) -> (Vec<Rows>, usize, Ending) {
    let mut frames = Vec::new();
    let mut used = 0;
    loop {
        let rest = &bytes[used..];
        if rest.is_empty() {
            return (frames, used, Ending::Whole);
        }
        if rest.len() < FRAME_HEAD {
            return (frames, used, Ending::Torn);
        }
        let count = number(rest) as usize;
        let end = count.checked_mul(shape.row_bytes()).and_then(|body| body.checked_add(FRAME_HEAD));
        let Some(body) = end.and_then(|end| rest.get(FRAME_HEAD..end)) else {
            return (frames, used, Ending::Torn);
        };
        let fits = count > 0 && checksum(&[&rest[..4], body]) == rest[4..FRAME_HEAD];
        match fits.then(|| pull_rows(body, count, shape)) {
            Some(Ok(rows)) => {
                frames.push(rows);
                used += FRAME_HEAD + body.len();
            }
            // A file system may have extended the file and lost the data.
            _ if FRAME_HEAD + body.len() == rest.len() || rest.iter().all(|&byte| byte == 0) => {
                return (frames, used, Ending::Torn);
            }
            _ => return (frames, used, Ending::Damaged),
        }
    }
}

fn push_rows(bytes: &mut Vec<u8>, parts: &[Rows]) {
    bytes.extend(parts.iter().flat_map(Rows::ordinals).flat_map(|ordinal| ordinal.to_le_bytes()));
    bytes.extend(parts.iter().flat_map(Rows::components).flat_map(|component| component.to_le_bytes()));
}

/// Reads `count` rows out of `body`, which has their length.
fn pull_rows(body: &[u8], count: usize, shape: Shape) -> Result<Rows, &'static str> {
    let (ordinals, components) = body.split_at(4 * count);
    Rows::from_parts(shape.components(), pull_numbers(ordinals), pull_components(components))
}

fn pull_numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(number).collect()
}

fn pull_components(bytes: &[u8]) -> Vec<f16> {
    bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// Reads the little-endian number at the start of `bytes`, which has at least four.
fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn checksum(parts: &[&[u8]]) -> [u8; CHECKSUM] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..CHECKSUM]);
    sum
}
