//! The memory in which the database's file is mapped, and letting go of it.
//!
//! In: the file's path. Out: its pages are no longer counted as this process's memory.
//!
//! **Invariant:** nothing is lost: a page that is let go stays with the system as long as there is room, and is read from the
//! file otherwise. A long load looks at keys all over the database, each of which maps the sixteen pages around it, so
//! that the whole file would count as memory of this process in the end.
//!
//! LMDB does not tell where it maps its file, so the system is asked (`proc(5)`, maps).

use std::path::Path;

/// Where a file is mapped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address(usize);

/// Returns where this process has mapped the beginning of a file.
pub(super) fn find(file: &Path) -> Option<Address> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let file = file.to_str()?;
    maps.lines().find_map(|line| {
        // Range, rights, offset, device, inode, path.
        let (fields, path) = line.split_once(file)?;
        let mut fields = fields.split_ascii_whitespace();
        let (start, offset) = (fields.next()?.split('-').next()?, fields.nth(1)?);
        let is_start = path.is_empty() && offset.bytes().all(|digit| digit == b'0');
        is_start.then(|| usize::from_str_radix(start, 16).ok().map(Address)).flatten()
    })
}

/// Lets go of the first `bytes` bytes of LMDB's map.
pub(super) fn let_go(Address(address): Address, bytes: u64) {
    let Ok(bytes) = usize::try_from(bytes) else { return };
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(address);
    // The other half of the one exception outside the FAISS module: the map itself is made in `tables`.
    #[expect(unsafe_code, reason = "advice on memory is unsafe as such, and heed gives none on its map")]
    // SAFETY: the range is the part of the environment's map that the file fills, which lives as long as the environment that
    // the caller holds. The map is shared and only read through, so a page that is let go is read from the file again and
    // has the same bytes.
    let refused = unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) } != 0;
    if refused {
        tracing::debug!("cannot let go of the database's pages: {}", std::io::Error::last_os_error());
    }
}

#[cfg(test)]
mod tests {
    use crate::store::tables::Tables;

    fn mapped_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn what_was_let_go_is_not_counted_and_reads_as_before() {
        const ROWS: u32 = 4096;
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let row = |number: u32| vec![number as u8; 5_000];
        let mut txn = tables.write().unwrap();
        for number in 0..ROWS {
            tables.texts.put_bytes(&mut txn, &number.to_be_bytes(), &row(number)).unwrap();
        }
        txn.commit().unwrap();
        let read_all = || {
            let txn = tables.read().unwrap();
            for number in 0..ROWS {
                assert_eq!(tables.texts.bytes(&txn, &number.to_be_bytes()).unwrap(), Some(&row(number)[..]));
            }
        };
        read_all();
        let held = mapped_bytes();
        tables.let_go();
        let freed = held.saturating_sub(mapped_bytes());
        assert!(freed > u64::from(ROWS) * 4_000, "{freed} of {held} bytes");
        read_all();
    }
}
