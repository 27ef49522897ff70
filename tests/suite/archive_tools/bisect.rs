//! The commit that lost an answer, in few searches.

use super::*;

#[test]
fn bisect_finds_the_commit_that_lost_the_answer_in_few_searches() {
    let repo = Repo::new();
    let answer = "/// Steers the harbour pilot through the fog.\nfn steer_pilot() {}\n";
    let mut commits = vec![repo.commit(&[("src/pilot.rs", answer), ("src/other.rs", "fn other() {}\n")])];
    for number in 1..20 {
        let pilot = if number < 13 { answer } else { "fn something_else() {}\n" };
        let other = format!("fn other() {{ step({number}); }}\n");
        commits.push(repo.commit(&[("src/pilot.rs", pilot), ("src/other.rs", &other)]));
    }
    repo.git(&["checkout", "-q", "-b", "side", &commits[2]]);
    let side = repo.commit(&[("src/pilot.rs", "fn aside() {}\n")]);
    repo.git(&["checkout", "-q", "main"]);
    let data = TempDir::new().unwrap();
    let program = env!("CARGO_BIN_EXE_tidemill");
    let tracked = Command::new(program)
        .args(["--data", data.path().to_str().unwrap(), "track", repo.path().to_str().unwrap()])
        .args(["--once", "--backfill", "all", "--ref", "*", "-q"])
        .status()
        .unwrap();
    assert!(tracked.success());

    let searcher = Searcher::open(&Layout::new(data.path())).unwrap();
    let request = Request { mode: Mode::Bm25, k: 3, ..Request::new("harbour pilot fog") };
    let expected = "src/pilot.rs".into();
    let run = |good: &str, bad: &str| {
        let mut steps = 0;
        let found = bisect(&searcher, &request, &expected, good, bad, &mut |_| steps += 1)?;
        assert_eq!(found.searches, steps);
        Ok::<_, BisectError>(found)
    };
    for (good, bad) in [(0, 19), (12, 13), (5, 14), (11, 19)] {
        let found = run(&commits[good], &commits[bad]).unwrap();
        assert_eq!(found.last_good.0.commit.to_string(), commits[12]);
        assert_eq!(found.first_bad.0.commit.to_string(), commits[13]);
        assert_eq!(found.snapshots, bad - good + 1);
        let halvings = (bad - good).next_power_of_two().trailing_zeros() as usize;
        assert!(found.searches <= 2 + halvings, "{} searches from {good} to {bad}", found.searches);
    }
    assert!(matches!(run(&commits[14], &commits[19]), Err(BisectError::NotGood { .. })));
    assert!(matches!(run(&commits[0], &commits[5]), Err(BisectError::NotBad { rank: 1, .. })));
    assert!(matches!(run(&commits[5], &side), Err(BisectError::NotOnLine { .. })));
    assert!(run(&commits[1], &side).is_ok());
}
