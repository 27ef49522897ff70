//! Sealed files of earlier builds: read whole, once; the next writer writes them anew (`stored.rs`).
//!
//! In: a file of format 1 or 2. Out: its rows.
//!
//! **Invariant:** nothing is interpreted before the sum of the whole file fits, but the few numbers that say where it stands.
//!
//! ```text
//! "TMVSEAL1", format u32, dimensions u32, model 16 bytes, count u32                   36 bytes
//!   format 1    count × u32 ordinals (ascending), count × dimensions × f16            BLAKE3 of all that, 32 bytes
//!   format 2    lists u32, lists × dimensions × f16 centres, lists × u32 rows of each,
//!               then the ordinals of list after list (ascending in each), their components in the same order, and the sum
//! ```

use super::VectorError;
use super::clustered::ClusterRows;
use super::format::{
    CLUSTERED, HEAD, OTHER_LENGTH, SEALED_HEAD, SEALED_MAGIC, SealedRows, Shape, check_head, number, pull_components,
};
use super::rows::Rows;
use half::f16;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A file is read in pieces of this size, which stay in the processor's cache from the file to the rows.
const PIECE: usize = 1 << 18;

/// Returns the rows of a sealed file of `length` bytes, once its whole is proven: it is read twice, and never held beside its
/// rows.
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

/// Returns whether the first `content` bytes have the sum that follows them.
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

/// What is left to read of a sealed file that is whole.
struct Body<'a, R> {
    file: &'a mut R,
    left: u64,
    piece: Vec<u8>,
}

/// What was read, or why it cannot be that.
type Found<T> = io::Result<Result<T, &'static str>>;

impl<R: Read> Body<'_, R> {
    /// Returns the next so many bytes, of which there are as many.
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
            pull_components(piece, &mut components);
        }
        Ok(components)
    }

    /// Reads all that is left as `count` rows.
    fn rows(&mut self, count: usize, shape: Shape) -> Found<Rows> {
        if !self.is(count.checked_mul(shape.row_bytes())) {
            return Ok(Err(OTHER_LENGTH));
        }
        let ordinals = self.numbers(count)?;
        let components = self.components(count * shape.components())?;
        Ok(Rows::from_parts(shape.components(), ordinals, components))
    }

    /// Reads all that is left as `count` rows in lists.
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
        // The sizes are as hostile as the rest; where they fit, so do the products.
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

/// Returns the bytes that earlier builds wrote.
#[cfg(test)]
pub(super) fn encode_sealed(shape: Shape, rows: &SealedRows) -> Vec<u8> {
    let format = match rows {
        SealedRows::Flat(_) => super::format::FORMAT,
        SealedRows::Clustered(_) => CLUSTERED,
    };
    let mut bytes = super::format::head(SEALED_MAGIC, format, shape);
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
    super::format::push_rows(&mut bytes, parts);
    let hash = blake3::hash(&bytes);
    bytes.extend(hash.as_bytes());
    bytes
}
