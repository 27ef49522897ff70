"""Pathway: a document store with a hybrid index (words and vectors) over a folder that it watches.

https://pathway.com/developers/user-guide/llm-xpack/docs-indexing: `pw.io.fs.read` in streaming mode, a `DocumentStore`
with a `HybridIndexFactory` of `TantivyBM25Factory` and `UsearchKnnFactory`, asked through its REST server. At every
commit the changed files are written into the folder.

When a commit is in is read off the store's table of chunks (`pw.io.subscribe`), and a question asked afterwards is
answered by an index at least as new. Both indexes are in memory: a start builds them again.
"""

import json
import os
import socket
import threading
import time
import urllib.request

import pathway as pw
from corpus import split, write_tree
from pathway.stdlib.indexing import HybridIndexFactory, TantivyBM25Factory, UsearchKnnFactory
from pathway.xpacks.llm.document_store import DocumentStore
from pathway.xpacks.llm.embedders import BaseEmbedder
from pathway.xpacks.llm.servers import DocumentStoreServer
from peer import Peer

MOST_SECONDS = 600


class Embedder(BaseEmbedder):
    """Questions come here too; they cannot be told apart, and are embedded as texts."""

    def __init__(self, vectors):
        super().__init__()
        self.vectors = vectors

    def __wrapped__(self, input: str, **kwargs) -> list[float]:
        return self.vectors.documents([input])[0].tolist()


@pw.udf
def splitter(text: str) -> list[tuple[str, dict]]:
    return [(chunk, {}) for chunk in split(text)]


class PathwayPeer(Peer):
    name = "Pathway document store"
    answers = "words and vectors, fused"

    def load(self, step):
        self.tree = self.folder / "tree"
        write_tree(self.tree, step.documents)
        self.held, self.lock = {}, threading.Lock()
        files = pw.io.fs.read(
            str(self.tree), format="binary", with_metadata=True, mode="streaming", autocommit_duration_ms=50
        )
        vectors = UsearchKnnFactory(dimensions=256, embedder=Embedder(self.vectors))
        factory = HybridIndexFactory([TantivyBM25Factory(), vectors])
        store = DocumentStore(files, retriever_factory=factory, splitter=splitter)
        pw.io.subscribe(store.chunked_docs, on_change=self._changed)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1/retrieve"
        DocumentStoreServer("127.0.0.1", port, store).run(threaded=True, with_cache=False)
        self._wait(step.documents, answered=False)

    def apply(self, step):
        write_tree(self.tree, step.changes)
        self._wait(step.changes, answered=True)

    def search(self, question, k):
        body = json.dumps({"query": question, "k": k}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=MOST_SECONDS) as answer:
            hits = json.loads(answer.read())
        return [(self._path(hit["metadata"]), hit["text"]) for hit in hits]

    def entries(self):
        with self.lock:
            return {(path, text) for path, texts in self.held.items() for text, count in texts.items() if count > 0}

    def _changed(self, key, row, time, is_addition):
        metadata = row["metadata"]
        path = self._path(metadata.as_dict() if hasattr(metadata, "as_dict") else metadata)
        with self.lock:
            texts = self.held.setdefault(path, {})
            texts[row["text"]] = texts.get(row["text"], 0) + (1 if is_addition else -1)

    def _path(self, metadata):
        return os.path.relpath(metadata["path"], self.tree)

    def _wait(self, changes, answered):
        wanted = {path: set(split(text)) if text else set() for path, text in changes.items()}
        end = time.monotonic() + MOST_SECONDS
        while True:
            with self.lock:
                for path in list(wanted):
                    held = {text for text, count in self.held.get(path, {}).items() if count > 0}
                    if held == wanted[path]:
                        del wanted[path]
            if not wanted:
                break
            if time.monotonic() > end:
                raise RuntimeError(f"not in after {MOST_SECONDS} s: {sorted(wanted)[:3]}")
            time.sleep(0.005)
        while True:
            try:
                self.search("is it in", 1)
                return
            except OSError:
                if answered or time.monotonic() > end:
                    raise
                time.sleep(0.1)
