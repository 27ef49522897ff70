//! Remotes over a network: a git server with a name and a password, and clones that lack blobs.
//!
//! The server is git's own `http-backend`, behind a few lines of code here.

use crate::histories::repository::{Node, Repository, Tree};
use crate::histories::tracked::{Tracked, source};
use base64::Engine as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tidemill::config::SourceConfig;
use tidemill::store::TrackerState;

/// A server of the repositories in a folder; lives as long as the test's process.
struct Server {
    port: u16,
    /// Requests that came with the right name and password.
    admitted: Arc<AtomicU32>,
}

impl Server {
    fn start(folder: PathBuf, user: &'static str, password: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let admitted = Arc::new(AtomicU32::new(0));
        let count = admitted.clone();
        let ticket = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (folder, ticket, count) = (folder.clone(), ticket.clone(), count.clone());
                // A client that disconnects is no error.
                std::thread::spawn(move || answer(stream, &folder, &ticket, &count).unwrap_or_default());
            }
        });
        Self { port, admitted }
    }

    fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }
}

/// Answers one request and closes the connection.
fn answer(mut stream: TcpStream, folder: &Path, ticket: &str, admitted: &AtomicU32) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let found = lines.iter().skip(1).filter_map(|line| line.split_once(": "));
        found.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let body = if header("transfer-encoding").is_some() {
        chunks(&mut reader)?
    } else {
        let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body)?;
        body
    };
    if header("authorization") != Some(format!("Basic {ticket}")) {
        let refusal = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"mill\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(refusal.as_bytes());
    }
    admitted.fetch_add(1, Ordering::Relaxed);
    let words: Vec<&str> = lines[0].split(' ').collect();
    let (path, query) = words[1].split_once('?').unwrap_or((words[1], ""));
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", words[0])
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("REMOTE_USER", "mill")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    backend.stdin.take().unwrap().write_all(&body)?;
    let said = backend.wait_with_output()?.stdout;
    let end = said.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let (head, content) = (String::from_utf8_lossy(&said[..end]).into_owned(), &said[end + 4..]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let length = content.len();
    write!(stream, "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(content)
}

/// Reads a body that comes in chunks (RFC 9112, section 7.1).
fn chunks(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut chunk = vec![0; usize::from_str_radix(line.trim(), 16).unwrap() + 2];
        reader.read_exact(&mut chunk)?;
        if chunk.len() == 2 {
            return Ok(body);
        }
        body.extend(&chunk[..chunk.len() - 2]);
    }
}

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| (path.as_bytes().to_vec(), Node::File(text.as_bytes().to_vec(), false))).collect()
}

fn found(tracked: &Tracked, word: &str) -> Vec<String> {
    tracked.paths_in(word, "main").into_iter().map(|path| String::from_utf8(path).unwrap()).collect()
}

/// Names a store for a clone that fetches.
fn fetching(clone: &Path, store: &Path) -> Tracked {
    let config = SourceConfig { fetch_seconds: Some(3600.0), name: Some("clone".to_owned()), ..source(clone) };
    Tracked::of(vec![config], store)
}

#[test]
#[cfg(feature = "remote")]
fn a_server_that_asks_for_a_password_gets_that_of_the_credential_helper() {
    let mut origin = Repository::new();
    let first = origin.commit("main", &[], &tree(&[("a.txt", "firstword\n")]));
    let clone = origin.beside("clone.git");
    origin.git(&["clone", "-q", "--bare", &origin.path().to_string_lossy(), &clone.to_string_lossy()]);
    let server = Server::start(origin.path().parent().unwrap().to_owned(), "mill", "tide");
    origin.git_at(&clone, &["remote", "set-url", "origin", &server.url("repo.git")]);
    origin.commit("main", &[&first], &tree(&[("a.txt", "secondword\n")]));

    let error = |tracked: &Tracked| {
        let fetch = TrackerState::read(&tracked.layout).unwrap().sources["clone"].fetch.clone().unwrap();
        fetch.error
    };
    let mut tracked = fetching(&clone, &origin.beside("store"));
    tracked.step();
    assert_eq!(found(&tracked, "firstword"), ["a.txt"], "a server that refuses stops nothing");
    assert!(error(&tracked).is_some());
    tracked.stop();

    let helper = "!f() { test \"$1\" = get && echo username=mill && echo password=tide; }; f";
    origin.git_at(&clone, &["config", "credential.helper", helper]);
    tracked.step();
    assert_eq!(error(&tracked), None);
    assert_eq!(found(&tracked, "secondword"), ["a.txt"]);
    assert!(server.admitted.load(Ordering::Relaxed) >= 2);
}

#[test]
fn a_partial_clone_is_fetched_and_what_it_lacks_stays_a_fault() {
    let mut origin = Repository::new();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let first = origin.commit("main", &[], &tree(&[("old.txt", "oldword\n"), ("edited.txt", "beforeword\n")]));
    let clone = origin.beside("partial.git");
    let url = format!("file://{}", origin.path().display());
    origin.git(&["clone", "-q", "--bare", "--filter=blob:none", &url, &clone.to_string_lossy()]);
    let mut tracked = fetching(&clone, &origin.beside("store"));
    tracked.step();
    assert_eq!(tracked.documents(&first)[&b"old.txt"[..]].1, crate::histories::tracked::Fate::Fault);

    let second = origin.commit("main", &[&first], &tree(&[("old.txt", "oldword\n"), ("edited.txt", "afterword\n")]));
    tracked.stop();
    tracked.step();
    assert_eq!(tracked.views()["main"], second);
    assert_eq!(found(&tracked, "afterword"), ["edited.txt"], "what is fetched comes whole");
    assert_eq!(tracked.documents(&second)[&b"old.txt"[..]].1, crate::histories::tracked::Fate::Fault);
}
