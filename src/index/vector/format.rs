//! What the vector files have in common, and the bytes of tails.
//!
//! In: rows. Out: bytes, and rows again once the bytes are verified.
//!
//! **Invariant:** nothing is interpreted before its checksum fits, except the few numbers that give the position of the checksum,
//! and those are compared with the actual length.
//!
//! ```text
//! sealed file   "TMVSEAL1", format u32, dimensions u32, model 16 bytes, count u32     36 bytes; the rest is told in
//!               `stored.rs` (format 3) and `earlier.rs` (formats 1 and 2)
//! tail file     "TMVTAIL1", format u32, dimensions u32, model 16 bytes                32 bytes, then 8 of their BLAKE3
//!               frames: count u32, first 8 bytes of the BLAKE3 of count, ordinals and components; ordinals; components
//! ```
//!
//! All numbers are little endian. A frame that ends beyond the file, or a last frame whose checksum does not fit, is torn: it was
//! never published. Damage before other frames is a different case.

use super::VectorError;
use super::clustered::ClusterRows;
use super::rows::Rows;
use dataflows::data::ModelId;
use half::f16;
use roaring::RoaringBitmap;
use std::path::Path;

/// The format of tails, and of sealed files of earlier builds whose rows are in one block.
pub(super) const FORMAT: u32 = 1;
/// The format of sealed files of earlier builds whose rows are in lists.
pub(super) const CLUSTERED: u32 = 2;
/// The format of sealed files.
pub(super) const STORED: u32 = 3;

/// Bytes of a tail file's header.
pub(super) const TAIL_HEADER: usize = HEAD + CHECKSUM;

pub(super) const SEALED_MAGIC: &[u8; 8] = b"TMVSEAL1";
const TAIL_MAGIC: &[u8; 8] = b"TMVTAIL1";
/// Bytes of magic, format, dimensions and model.
pub(super) const HEAD: usize = 32;
const CHECKSUM: usize = 8;
const FRAME_HEAD: usize = 4 + CHECKSUM;
/// Bytes of what all sealed files begin with.
pub(super) const SEALED_HEAD: usize = HEAD + 4;
pub(super) const OTHER_LENGTH: &str = "its length does not fit its count";

/// The common properties of a store's vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Components of each vector.
    pub dimensions: u32,
    /// The fingerprint of the model that makes them.
    pub model: ModelId,
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

/// Returns what a file begins with.
pub(super) fn head(magic: &[u8; 8], format: u32, shape: Shape) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend(format.to_le_bytes());
    bytes.extend(shape.dimensions.to_le_bytes());
    bytes.extend(shape.model.to_bytes());
    bytes
}

/// Returns whose vectors a file says that it holds, if it begins as a vector file does; nothing of it is checked.
pub(super) fn model_in(bytes: &[u8]) -> Option<Shape> {
    let is_one = bytes.len() >= HEAD && [SEALED_MAGIC, TAIL_MAGIC].iter().any(|magic| bytes.starts_with(*magic));
    is_one.then(|| {
        let mut model = [0; 16];
        model.copy_from_slice(&bytes[16..HEAD]);
        Shape { dimensions: number(&bytes[12..]), model: ModelId::from_bytes(model) }
    })
}

/// Compares a checked head with the expected one, and returns its format.
pub(super) fn check_head(bytes: &[u8], magic: &[u8; 8], shape: Shape, path: &Path) -> Result<u32, VectorError> {
    if bytes[..8] != magic[..] {
        return Err(VectorError::damaged(path, "it does not start as a vector file"));
    }
    let found = number(&bytes[8..]);
    if found != FORMAT && (![CLUSTERED, STORED].contains(&found) || magic != SEALED_MAGIC) {
        return Err(VectorError::OtherFormat { path: path.into(), found });
    }
    let found_dimensions = number(&bytes[12..]);
    let mut model = [0; 16];
    model.copy_from_slice(&bytes[16..HEAD]);
    let found_model = ModelId::from_bytes(model);
    if (found_dimensions, found_model) != (shape.dimensions, shape.model) {
        return Err(VectorError::OtherModel { path: path.into(), found_model, found_dimensions, expected: shape });
    }
    Ok(found)
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

/// Appends the ordinals of all parts, and behind them their components.
pub(super) fn push_rows(bytes: &mut Vec<u8>, parts: &[Rows]) {
    parts.iter().for_each(|part| push_numbers(bytes, part.ordinals()));
    parts.iter().for_each(|part| push_components(bytes, part.components()));
}

/// Reads `count` rows out of `body`, which has their length.
fn pull_rows(body: &[u8], count: usize, shape: Shape) -> Result<Rows, &'static str> {
    let (ordinals, of_components) = body.split_at(4 * count);
    let mut components = Vec::with_capacity(of_components.len() / 2);
    pull_components(of_components, &mut components);
    Rows::from_parts(shape.components(), pull_numbers(ordinals), components)
}

/// Appends numbers.
pub(super) fn push_numbers(bytes: &mut Vec<u8>, numbers: &[u32]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Appends components.
pub(super) fn push_components(bytes: &mut Vec<u8>, components: &[f16]) {
    let start = bytes.len();
    bytes.resize(start + 2 * components.len(), 0);
    for (pair, component) in bytes[start..].chunks_exact_mut(2).zip(components) {
        pair.copy_from_slice(&component.to_le_bytes());
    }
}

pub(super) fn pull_numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(number).collect()
}

/// Appends the components that `bytes` hold.
pub(super) fn pull_components(bytes: &[u8], into: &mut Vec<f16>) {
    into.extend(bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])));
}

/// Reads the little-endian number at the start of `bytes`, which has at least four.
pub(super) fn number(bytes: &[u8]) -> u32 {
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
