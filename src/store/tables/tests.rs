//! The remains of killed readers, and the view of a transaction.

use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The folder of the store that another process reads until it is killed.
const READ_UNTIL_KILLED: &str = "TIDEMILL_TEST_READ_UNTIL_KILLED";

#[test]
fn a_transaction_sees_one_moment_however_long_it_lasts() {
    if let Some(folder) = std::env::var_os(READ_UNTIL_KILLED) {
        let tables = Tables::open(Path::new(&folder), false).unwrap();
        let _held = tables.read().unwrap();
        println!("\nit reads");
        loop {
            std::thread::park();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let tables = Tables::open(folder.path(), true).unwrap();
    rewrite(&tables, 1);
    let held = tables.read().unwrap();
    rewrite(&tables, 2);
    let first = |txn: &RoTxn<'_>| tables.receipts.bytes(txn, &0_u32.to_be_bytes()).unwrap().unwrap()[0];
    assert_eq!([first(&held), first(&tables.read().unwrap())], [1, 2]);
}

/// Writes two thousand rows again, some hundred pages.
fn rewrite(tables: &Tables, byte: u8) {
    let mut txn = tables.write().unwrap();
    for row in 0..2000_u32 {
        tables.receipts.put_bytes(&mut txn, &row.to_be_bytes(), &[byte; 200]).unwrap();
    }
    txn.commit().unwrap();
}

/// Starts a reader process and returns it once it reads.
fn reader(folder: &Path) -> Child {
    let name = "store::tables::tests::a_transaction_sees_one_moment_however_long_it_lasts";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(READ_UNTIL_KILLED, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "it reads"), "the reader ended");
    child
}

#[test]
fn readers_that_are_killed_let_the_database_grow_no_more_than_none_do() {
    let bytes_after = |kills: bool| {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        for round in 0..40 {
            if kills && round % 8 == 0 {
                let mut reader = reader(folder.path());
                reader.kill().unwrap();
                reader.wait().unwrap();
            }
            rewrite(&tables, round);
        }
        tables.disk_bytes().unwrap()
    };
    let (without, with) = (bytes_after(false), bytes_after(true));
    assert!(with <= without * 3 / 2, "{with} bytes beside readers that were killed, {without} without");
}
