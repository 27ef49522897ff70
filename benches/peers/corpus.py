"""What every peer is given: the texts of a commit, what a commit changes, and how a text is cut.

In: a git repository and a range of first-parent commits. Out: documents (path to text) and changes.

Binary files, texts that are not UTF-8, texts above 1 MB, links and missing contents are left out.
"""

import os
import subprocess
from dataclasses import dataclass

MAX_BYTES = 1 << 20
MAX_CHUNK_CHARACTERS = 1500
MAX_CHUNK_LINES = 40


@dataclass
class Step:
    """One commit: what it changed (path to new text, None for a path that is gone), and the tree that it leaves."""

    commit: str
    changes: dict
    documents: dict


class Corpus:
    """Reads texts out of a repository. `documents` is the tree at the last commit that was asked for."""

    def __init__(self, repository):
        self.repository = str(repository)
        self.documents = {}
        environment = dict(os.environ, GIT_NO_LAZY_FETCH="1")
        self.batch = subprocess.Popen(
            ["git", "-C", self.repository, "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.repository, *arguments], check=True, capture_output=True).stdout

    def commits(self, count):
        """Returns the newest commits of HEAD's first-parent chain, oldest first, and one more in front to begin with."""
        out = self.git("rev-list", "--first-parent", "-n", str(count + 1), "HEAD").decode().split()
        return out[::-1]

    def load(self, commit):
        """Returns all documents of a commit."""
        self.documents = {}
        for record in self.git("ls-tree", "-r", "-z", commit).split(b"\0"):
            if record:
                head, path = record.split(b"\t", 1)
                mode, _, content = head.split()
                self._put(path, mode, content)
        return Step(commit, dict(self.documents), dict(self.documents))

    def step(self, parent, commit):
        """Returns what a commit changed; a rename is a path that is gone and one that is new."""
        before = dict(self.documents)
        fields = self.git("diff-tree", "-r", "-z", "--no-renames", parent, commit).split(b"\0")[:-1]
        touched = []
        for head, path in zip(fields[::2], fields[1::2]):
            _, mode, _, content, status = head[1:].split()
            name = path.decode(errors="surrogateescape")
            self.documents.pop(name, None)
            if status != b"D":
                self._put(path, mode, content)
            touched.append(name)
        changes = {
            name: self.documents.get(name) for name in touched if self.documents.get(name) != before.get(name)
        }
        return Step(commit, changes, dict(self.documents))

    def _put(self, path, mode, content):
        if mode not in (b"100644", b"100755"):
            return
        text = self._text(content)
        if text is not None:
            self.documents[path.decode(errors="surrogateescape")] = text

    def _text(self, content):
        self.batch.stdin.write(content + b"\n")
        self.batch.stdin.flush()
        head = self.batch.stdout.readline().split()
        if len(head) != 3:
            return None
        data = self.batch.stdout.read(int(head[2]) + 1)[:-1]
        if len(data) > MAX_BYTES or b"\0" in data:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        return text if text.strip() else None

    def close(self):
        self.batch.stdin.close()
        self.batch.wait()


def split(text):
    """Cuts a text at blank lines into chunks of at most 40 lines and some 1,500 characters."""
    chunks, lines, size = [], [], 0

    def flush():
        nonlocal lines, size
        chunk = "\n".join(lines).strip("\n")
        if chunk.strip():
            chunks.append(chunk)
        lines, size = [], 0

    for line in text.splitlines():
        for start in range(0, max(len(line), 1), MAX_CHUNK_CHARACTERS):
            piece = line[start : start + MAX_CHUNK_CHARACTERS]
            full = len(lines) >= MAX_CHUNK_LINES or size + len(piece) > MAX_CHUNK_CHARACTERS
            # From half the size on a blank line ends a chunk.
            if full or (not piece.strip() and size > MAX_CHUNK_CHARACTERS // 2):
                flush()
            lines.append(piece)
            size += len(piece) + 1
    flush()
    return chunks


def write_tree(tree, changes):
    """Brings a folder in step: writes what came or changed, and removes what went (text None)."""
    for path, text in changes.items():
        place = tree / path
        if text is None:
            place.unlink()
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())
