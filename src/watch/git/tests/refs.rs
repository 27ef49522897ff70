//! The watcher: a moved ref wakes it at once, however it moved, and polling does if there are no events.

use super::*;
use std::time::Duration;
use tokio::time::timeout;

/// Far longer than any wake-up may take: the promise is 100 ms, and a busy machine is no failure.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits for events until the predicate holds.
async fn wait(watcher: &mut RefWatcher, holds: impl Fn() -> bool) {
    let seen = async {
        while !holds() {
            watcher.changed().await;
        }
    };
    timeout(PATIENCE, seen).await.expect("the change must be seen");
}

#[tokio::test]
async fn every_way_a_ref_moves_wakes_the_watcher() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", "-b", "work", linked.to_str().unwrap()]);
    let source = source(&repo);
    let mut watcher = RefWatcher::start(&source, Duration::from_secs(3600)).unwrap();
    assert_eq!(watcher.state().warning, None);

    let head =
        |view: &'static str| move |source: &GitSource| heads(source, &[view]).heads.first().map(|head| head.commit.id);
    let second = repo.commit_file("a", "2");
    wait(&mut watcher, || head("main")(&source) == Some(second)).await;
    repo.git(&["branch", "deep/er/branch"]);
    wait(&mut watcher, || head("deep/er/branch")(&source) == Some(second)).await;
    repo.git(&["update-ref", "refs/heads/deep/er/branch", "HEAD~1"]);
    wait(&mut watcher, || head("deep/er/branch")(&source) == Some(repo.id("main~1"))).await;
    repo.git(&["pack-refs", "--all", "--prune"]);
    repo.git(&["branch", "-D", "deep/er/branch"]);
    wait(&mut watcher, || head("deep/er/branch")(&source).is_none()).await;
    std::fs::write(linked.join("b"), "1").unwrap();
    repo.git_at(&linked, &["add", "b"]);
    repo.git_at(&linked, &["commit", "-q", "-m", "in the linked work tree"]);
    wait(&mut watcher, || head("work")(&source) == Some(repo.id("work"))).await;
    repo.git(&["checkout", "-q", "--detach"]);
    wait(&mut watcher, || matches!(source.head().unwrap(), HeadState::Detached(_))).await;
    assert!(watcher.state().last_event.is_some());
}

#[tokio::test]
async fn looking_at_the_refs_is_no_event_itself() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    let source = source(&repo);
    let mut watcher = RefWatcher::start(&source, Duration::from_secs(3600)).unwrap();
    // Events of the start itself are over after a moment.
    while timeout(Duration::from_millis(200), watcher.changed()).await.is_ok() {}
    for _ in 0..3 {
        heads(&source, &["*"]);
        source.files(repo.id("main")).unwrap();
    }
    assert!(timeout(Duration::from_millis(200), watcher.changed()).await.is_err());
}

#[tokio::test]
async fn polling_goes_on_while_its_waits_are_dropped() {
    let repo = Repo::new();
    let mut watcher = RefWatcher::start(&source(&repo), Duration::from_millis(60)).unwrap();
    let mut polls = 0;
    let until = tokio::time::Instant::now() + PATIENCE;
    // Each wait is shorter than the interval, as when other sources keep waking the tracker.
    while polls < 3 && tokio::time::Instant::now() < until {
        if timeout(Duration::from_millis(20), watcher.changed()).await == Ok(Woken::Poll) {
            polls += 1;
        }
    }
    assert_eq!(polls, 3);
}
