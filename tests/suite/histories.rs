//! A repository under all kinds of git operations, against git's own plumbing: after every step each view points where its ref
//! does, and every commit on the way has a snapshot with exactly the files of its tree and exactly the words of its contents;
//! with a running tracker or without.

pub(crate) mod repository;
pub(crate) mod tracked;
mod world;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use world::{BRANCHES, Edit, PATHS, Step, TAGS, World};

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let path = 0..PATHS.len();
    let edit = prop_oneof![
        6 => path.clone().prop_map(Edit::Write),
        2 => (path.clone(), 0..64usize).prop_map(|(path, number)| Edit::Again(path, number)),
        2 => path.clone().prop_map(Edit::Delete),
        2 => (path.clone(), path.clone()).prop_map(|(from, to)| Edit::Rename(from, to)),
        1 => path.clone().prop_map(Edit::Mode),
        1 => path.clone().prop_map(Edit::Link),
        1 => path.prop_map(Edit::Module),
    ];
    // None at all makes an empty commit.
    prop::collection::vec(edit, 0..5)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let branch = 0..BRANCHES.len();
    let tag = 0..TAGS.len();
    let step = prop_oneof![
        8 => (branch.clone(), edits()).prop_map(|(branch, edits)| Step::Commit(branch, edits)),
        2 => branch.clone().prop_map(Step::Revert),
        3 => (branch.clone(), prop::collection::vec(branch.clone(), 1..4), edits())
            .prop_map(|(branch, others, edits)| Step::Merge(branch, others, edits)),
        2 => (branch.clone(), edits()).prop_map(|(branch, edits)| Step::Amend(branch, edits)),
        2 => (branch.clone(), branch.clone()).prop_map(|(branch, onto)| Step::Rebase(branch, onto)),
        1 => (branch.clone(), edits()).prop_map(|(branch, edits)| Step::Orphan(branch, edits)),
        5 => (branch.clone(), 0..64usize).prop_map(|(branch, commit)| Step::Force(branch, commit)),
        1 => (branch.clone(), branch.clone()).prop_map(|(from, to)| Step::RenameBranch(from, to)),
        2 => branch.clone().prop_map(Step::DeleteBranch),
        3 => (tag.clone(), branch.clone(), any::<bool>())
            .prop_map(|(tag, branch, annotated)| Step::Tag(tag, branch, annotated)),
        1 => (tag.clone(), branch).prop_map(|(tag, branch)| Step::TagOfTree(tag, branch)),
        1 => tag.prop_map(Step::DeleteTag),
        1 => Just(Step::Pack),
        1 => Just(Step::Prune),
        4 => Just(Step::Restart),
        6 => Just(Step::Unseen),
    ];
    prop::collection::vec(step, 8..28)
}

fn check(steps: &[Step]) {
    let mut world = World::new();
    world.look();
    let mut unseen = false;
    for step in steps {
        world.take(step);
        if !unseen && !matches!(step, Step::Unseen) {
            world.look();
        }
        unseen = matches!(step, Step::Unseen);
    }
    world.look();
    world.compare_words();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_view_stands_where_its_ref_does_and_every_snapshot_is_its_tree(steps in steps()) {
        check(&steps);
    }
}

/// A few histories, the same each time; with `TIDEMILL_HEAVY` a hundred random ones.
fn config() -> ProptestConfig {
    let heavy = std::env::var_os("TIDEMILL_HEAVY").is_some();
    let (cases, rng_seed) = if heavy { (100, RngSeed::Random) } else { (4, RngSeed::Fixed(4)) };
    ProptestConfig { cases, rng_seed, max_shrink_iters: 200, ..ProptestConfig::default() }
}

#[test]
fn a_repository_that_loses_all_its_branches_leaves_no_view_behind() {
    check(&[Step::Commit(0, vec![Edit::Write(2)]), Step::DeleteBranch(0), Step::Restart, Step::Unseen]);
}

#[test]
fn a_branch_that_is_renamed_and_made_again_while_the_tracker_is_off_holds_its_new_files() {
    check(&[
        Step::Force(1, 0),
        Step::Commit(1, vec![Edit::Write(3), Edit::Write(8)]),
        Step::Restart,
        Step::Unseen,
        Step::RenameBranch(1, 2),
        Step::Orphan(1, vec![Edit::Write(4)]),
    ]);
}

#[test]
fn a_tag_beside_a_branch_of_its_name_renames_the_view_and_back() {
    check(&[Step::Force(1, 0), Step::Tag(1, 0, true), Step::Commit(1, vec![Edit::Write(5)]), Step::DeleteTag(1)]);
}

#[test]
fn what_was_pruned_after_a_rewrite_is_taken_back_from_what_the_store_knows() {
    check(&[
        Step::Commit(0, vec![Edit::Write(2), Edit::Write(9)]),
        Step::Unseen,
        Step::Force(0, 0),
        Step::Unseen,
        Step::Commit(0, vec![Edit::Write(10)]),
        Step::Prune,
        Step::Commit(0, vec![Edit::Delete(10)]),
    ]);
}
