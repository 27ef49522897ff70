//! Fetches new objects and refs from the remote, before the refs are read.
//!
//! In: a repository with a remote. Out: objects and remote-tracking refs, as `git fetch` would write them.
//!
//! **Invariant:** only this module writes to a repository, and only the refs of the remote's refspecs. A repository with a work
//! tree gets `refs/remotes/*`, so no local branch moves. A bare repository without refspecs (as `git clone --bare` makes it) gets
//! the remote's branches as its own. Nothing is pruned unless the repository's configuration says so.
//!
//! The remote is `origin`, or else the first by name. Local paths, `file://` and `http://` always work. `https://`, `ssh://` and
//! credentials need the cargo feature `remote`, which adds OpenSSL. Credentials come from the ssh agent and git's own helpers;
//! there is never a password prompt.

use super::{GitError, GitSource};
use git2::{FetchOptions, Remote, RemoteCallbacks, Repository};
use std::time::{Duration, Instant};

/// Longest time that one fetch may take before it counts as failed.
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// The preferred remote if there are several.
const ORIGIN: &str = "origin";
/// The refspec of a bare repository that has none.
const BARE_REFSPEC: &str = "+refs/heads/*:refs/heads/*";

impl GitSource {
    /// Fetches from the remote; `stop` is polled for an interruption.
    ///
    /// It blocks for the duration of the network traffic.
    ///
    /// # Errors
    ///
    /// If there is no remote, or it does not answer, refuses, or uses a protocol that this build lacks.
    pub fn fetch(&self, stop: impl Fn() -> bool) -> Result<(), GitError> {
        let repository = self.pool.get()?;
        let (name, mut remote) = remote(&repository)?;
        let failed = |source| GitError::Fetch { remote: name.clone(), next: next_step(&name), source };
        let refspecs = match remote.fetch_refspecs().map_err(failed)?.len() {
            0 if repository.is_bare() => vec![BARE_REFSPEC],
            _ => Vec::new(),
        };
        let started = Instant::now();
        let goes_on = || !stop() && started.elapsed() < LONGEST;
        let mut callbacks = RemoteCallbacks::new();
        callbacks.transfer_progress(|_| goes_on());
        callbacks.sideband_progress(|_| goes_on());
        #[cfg(feature = "remote")]
        credentials(&mut callbacks, repository.config().map_err(failed)?);
        let mut options = FetchOptions::new();
        options.remote_callbacks(callbacks).update_fetchhead(false);
        remote.fetch(&refspecs, Some(&mut options), None).map_err(failed)
    }
}

fn remote(repository: &Repository) -> Result<(String, Remote<'_>), GitError> {
    let failed = |source| GitError::Read { what: "the remotes".to_owned(), source };
    let names = repository.remotes().map_err(failed)?;
    let mut names: Vec<&str> = names.iter().filter_map(|name| name.ok().flatten()).collect();
    names.sort_unstable_by_key(|name| (*name != ORIGIN, *name));
    let name = *names.first().ok_or(GitError::NoRemote)?;
    Ok((name.to_owned(), repository.find_remote(name).map_err(failed)?))
}

fn next_step(remote: &str) -> String {
    let other_build =
        if cfg!(feature = "remote") { "" } else { " (https and ssh need a build with `--features remote`)" };
    format!("see whether `git fetch {remote}` works{other_build}")
}

/// Answers requests for credentials from the agent and git's helpers, each kind once: libgit2 asks again for as long as
/// it gets answers.
#[cfg(feature = "remote")]
fn credentials(callbacks: &mut RemoteCallbacks<'_>, config: git2::Config) {
    use git2::{Cred, CredentialType};
    let mut tried = CredentialType::empty();
    callbacks.credentials(move |url, user, allowed| {
        let mut take = |kind: CredentialType| {
            let first = allowed.contains(kind) && !tried.contains(kind);
            tried |= if first { kind } else { CredentialType::empty() };
            first
        };
        if take(CredentialType::USERNAME) {
            return Cred::username(user.unwrap_or("git"));
        }
        if take(CredentialType::SSH_KEY) {
            return Cred::ssh_key_from_agent(user.unwrap_or("git"));
        }
        if take(CredentialType::USER_PASS_PLAINTEXT) {
            return Cred::credential_helper(&config, url, user);
        }
        if take(CredentialType::DEFAULT) {
            return Cred::default();
        }
        Err(git2::Error::from_str("neither the ssh agent nor a credential helper has an accepted answer"))
    });
}
