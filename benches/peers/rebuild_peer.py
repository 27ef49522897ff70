"""Plain tantivy and FAISS, rebuilt from nothing at every commit: what one writes without a stream processor.

Chunks and their vectors are remembered by path and by text, so a commit embeds only what is new; both indexes are
made anew and written to disk, then opened. One writer thread, exact vector search.
"""

import hashlib
import os
import pickle
import re
import shutil

import faiss
import numpy
import tantivy
from corpus import split
from peer import Peer

SCHEMA = tantivy.SchemaBuilder().add_unsigned_field("row", stored=True, indexed=True).add_text_field("text").build()


class RebuildPeer(Peer):
    name = "tantivy + FAISS, rebuilt"
    answers = "words and vectors, fused"

    def load(self, step):
        self.memo, self.chunks, self.generation = {}, {}, 0
        state = self.folder / "state"
        if state.exists():
            kept = pickle.loads(state.read_bytes())
            self.memo, self.chunks, self.generation = kept["memo"], kept["chunks"], kept["generation"]
            if kept["commit"] == step.commit:
                self._open(kept["rows"])
                return
        self._build(step, step.documents)

    def apply(self, step):
        self._build(step, step.changes)

    def _build(self, step, changed):
        for path in changed:
            text = step.documents.get(path)
            if text is None:
                self.chunks.pop(path, None)
            else:
                self.chunks[path] = split(text)
        rows = sorted({(path, chunk) for path, chunks in self.chunks.items() for chunk in chunks})
        keys = [hashlib.sha1(chunk.encode()).digest() for _, chunk in rows]
        new = {key: chunk for key, (_, chunk) in zip(keys, rows) if key not in self.memo}
        self.memo.update(zip(new, self.vectors.documents(list(new.values()))))

        self.generation += 1
        folder = self.folder / str(self.generation)
        folder.mkdir()
        index = tantivy.Index(SCHEMA, path=str(folder))
        writer = index.writer(num_threads=1)
        for row, (_, chunk) in enumerate(rows):
            writer.add_document(tantivy.Document.from_dict({"row": row, "text": chunk}, SCHEMA))
        writer.commit()
        writer.wait_merging_threads()
        vectors = faiss.IndexFlatIP(256)
        vectors.add(numpy.stack([self.memo[key] for key in keys]))
        faiss.write_index(vectors, str(folder / "vectors"))
        state = {"commit": step.commit, "rows": rows, "memo": self.memo, "chunks": self.chunks}
        with open(self.folder / "state.new", "wb") as out:
            pickle.dump(state | {"generation": self.generation}, out)
        os.replace(self.folder / "state.new", self.folder / "state")
        shutil.rmtree(self.folder / str(self.generation - 1), ignore_errors=True)
        self._open(rows)

    def _open(self, rows):
        folder = self.folder / str(self.generation)
        self.rows = rows
        self.index = tantivy.Index(SCHEMA, path=str(folder))
        self.faiss = faiss.read_index(str(folder / "vectors"))

    def search(self, question, k):
        depth, fused = 10 * k, {}
        searcher = self.index.searcher()
        words = " ".join(re.findall(r"\w+", question.lower()))
        found = searcher.search(self.index.parse_query(words, ["text"]), depth).hits
        by_words = [searcher.doc(address)["row"][0] for _, address in found]
        _, near = self.faiss.search(self.vectors.query(question)[None], depth)
        for ranking in (by_words, near[0].tolist()):
            for rank, row in enumerate(ranking, 1):
                fused[row] = fused.get(row, 0.0) + 1.0 / (60 + rank)
        best = sorted(fused, key=lambda row: (-fused[row], row))[:k]
        return [self.rows[row] for row in best]

    def entries(self):
        searcher = self.index.searcher()
        if not searcher.num_docs == self.faiss.ntotal == len(self.rows):
            raise RuntimeError(f"{searcher.num_docs} documents, {self.faiss.ntotal} vectors, {len(self.rows)} rows")
        return set(self.rows)
