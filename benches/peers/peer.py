"""What a peer has to do, and nothing more.

In: documents, then commit after commit what changed. Out: answers, and what the peer thinks that it holds.

A peer lives in one folder and writes nothing elsewhere. When `load` or `apply` returns, a search that starts then sees
the commit: that is the moment at which the clock stops.
"""

from abc import ABC, abstractmethod
from pathlib import Path

from corpus import split


class Peer(ABC):
    """One index that is kept in step. `folder` is its own; what is in it survives `close`."""

    name = "?"
    # Which indexes answer: said in the table.
    answers = "vectors"

    def __init__(self, folder, vectors, options):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.vectors = vectors
        self.options = options

    @abstractmethod
    def load(self, step):
        """Makes the index of `step.documents`: in an empty folder from nothing, in another by what it finds there."""

    @abstractmethod
    def apply(self, step):
        """Brings the index from the commit before to `step.commit`."""

    def persist(self):
        """Writes down what a later run needs and is not on disk yet. Called once, at the end, and timed by itself."""

    @abstractmethod
    def search(self, question, k):
        """Returns the best k hits, best first, as (path, text)."""

    @abstractmethod
    def entries(self):
        """Returns what the index holds, as a set of (path, text)."""

    def expected(self, step):
        """Returns what the index should hold at a commit, as `entries` returns it, or None if only a rebuild can say."""
        return {(path, chunk) for path, text in step.documents.items() for chunk in split(text)}

    def embedded(self):
        """Returns how many texts have been embedded, and in how many seconds."""
        return self.vectors.texts, self.vectors.seconds

    def process(self):
        """Returns the id of the process whose memory counts, or None for this one."""
        return None

    def close(self):
        """Lets go of the folder."""
