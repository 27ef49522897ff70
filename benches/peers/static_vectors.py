"""The same vectors for every peer: tidemill's built-in static model, read from its own files.

In: texts. Out: one row of 256 numbers a text, of length 1; zeros for a text without a known token.

The formulas are those of src/embedders/static_model.rs. What numpy adds in another order differs in the last bits; run
this file to compare it with the reference vectors beside the model.
"""

import json
import re
import sys
import time
from pathlib import Path

import numpy
from tokenizers import Tokenizer

MODEL = Path(__file__).resolve().parents[2] / "src" / "embedders" / "static-bi"
DIMENSIONS = 256
HEAD_WEIGHT, HEAD_DECAY, HEAD_TOKENS = 80.0, 0.9200444146293233, 512
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|[0-9]+|[^\x00-\x7f]+")
OTHER_GAP = re.compile("[\\s\u2581]+")


class StaticVectors:
    """Embeds, and counts what it embedded and how long that took."""

    def __init__(self):
        data = (MODEL / "embeddings.i8.bin").read_bytes()
        count, dimensions = numpy.frombuffer(data, "<u4", 2)
        if dimensions != DIMENSIONS or len(data) != 8 + int(count) * (4 + DIMENSIONS):
            raise SystemExit(f"cannot read the model: {MODEL} has another shape than expected")
        self.scales = numpy.frombuffer(data, "<f4", count, 8)
        self.rows = numpy.frombuffer(data, "i1", count * DIMENSIONS, 8 + 4 * count).reshape(count, DIMENSIONS)
        self.tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
        self.words = {}
        position = numpy.arange(HEAD_TOKENS)
        self.weights = 1.0 + HEAD_WEIGHT * HEAD_DECAY**position
        self.texts, self.seconds = 0, 0.0

    def documents(self, texts):
        """Returns the vectors of texts that are to be found, as one array."""
        begun = time.perf_counter()
        out = numpy.zeros((len(texts), DIMENSIONS), "f4")
        for row, text in zip(out, texts):
            self._sum(row, self._tokens(text), document=True)
        self.texts += len(texts)
        self.seconds += time.perf_counter() - begun
        return out

    def query(self, text):
        """Returns the vector of a question."""
        row = numpy.zeros(DIMENSIONS, "f4")
        self._sum(row, self._tokens(text), document=False)
        return row

    def _sum(self, row, tokens, document):
        if not tokens:
            return
        tokens = numpy.asarray(tokens)
        weights = numpy.ones(len(tokens))
        if document:
            head = min(len(tokens), HEAD_TOKENS)
            weights[:head] = self.weights[:head]
        distinct, at = numpy.unique(tokens, return_inverse=True)
        counts = numpy.bincount(at, weights)
        row[:] = (numpy.sqrt(counts).astype("f4") * self.scales[distinct]) @ self.rows[distinct].astype("f4")
        length = float(numpy.linalg.norm(row))
        if length > 0.0:
            row /= length

    def _tokens(self, text):
        out = []
        for found in WORD.finditer(text):
            run = found.group()
            if run[0] < "\x80":
                for start in range(0, len(run), 64):
                    out += self._word(run[start : start + 64].lower())
            else:
                for word in OTHER_GAP.split(run):
                    for start in range(0, len(word), 1024):
                        out += self._word(word[start : start + 1024].lower())
        return out

    def _word(self, word):
        tokens = self.words.get(word)
        if tokens is None:
            ids = self.tokenizer.encode(word, add_special_tokens=False).ids
            tokens = self.words[word] = [token for token in ids if token != 0]
        return tokens


def main():
    vectors = StaticVectors()
    worst = 0.0
    for case in json.loads((MODEL / "reference_vectors.json").read_text()):
        if case["kind"] == "query":
            found = vectors.query(case["text"])
        else:
            found = vectors.documents([case["text"]])[0]
        worst = max(worst, float(numpy.abs(found - numpy.array(case["vector"], "f4")).max()))
    print(f"largest difference from a reference vector: {worst:.2e}")
    sys.exit(worst > 1e-4)


if __name__ == "__main__":
    main()
