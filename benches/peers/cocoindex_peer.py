"""CocoIndex 1: an app over a folder, one component a file, rows in LanceDB; no server is needed.

The shape is that of its own example examples/text_embedding_lancedb: `localfs.walk_dir`, `mount_each` with a memoised
function a file, rows declared in a table target, no index on the table, so that LanceDB compares all vectors. At every
commit the changed files are written into the folder, which the app follows live; its own state is in LMDB beside the
table. A commit is in when the table holds the changed files' chunks, which is asked for every few milliseconds.
"""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import cocoindex as coco
import numpy
from numpy.typing import NDArray
import lancedb as lance
from cocoindex.connectors import lancedb, localfs
from cocoindex.resources.file import FileLike
from cocoindex.resources.id import IdGenerator
from cocoindex.resources.schema import VectorSchema
from corpus import split, write_tree
from peer import Peer

DATABASE = coco.ContextKey[lancedb.LanceAsyncConnection]("peers")
PEER = None
MOST_SECONDS = 300


@dataclass
class Row:
    id: int
    path: str
    text: str
    embedding: Annotated[NDArray, VectorSchema(dtype=numpy.dtype("f4"), size=256)]


@coco.lifespan
async def lifespan(builder: coco.EnvironmentBuilder):
    builder.settings.db_path = PEER.folder / "state"
    builder.provide(DATABASE, await lancedb.connect_async(str(PEER.folder / "rows")))
    yield


@coco.fn(memo=True)
async def process_file(file: FileLike, root: str, table: lancedb.TableTarget[Row]) -> None:
    path = Path(file.file_path.resolve()).relative_to(root).as_posix()
    chunks = split(await file.read_text())
    ids = IdGenerator()
    for chunk, vector in zip(chunks, PEER.vectors.documents(chunks)):
        table.declare_row(row=Row(await ids.next_id(chunk), path, chunk, vector))


@coco.fn
async def main(folder: Path) -> None:
    schema = await lancedb.TableSchema.from_class(Row, primary_key=["id"])
    table = await lancedb.mount_table_target(DATABASE, "chunks", schema)
    files = localfs.walk_dir(folder, live=True, recursive=True)
    await coco.mount_each(process_file, files.items(), str(folder), table)


class CocoIndexPeer(Peer):
    name = "CocoIndex live, LanceDB target"

    def load(self, step):
        global PEER
        PEER = self
        self.tree = self.folder / "tree"
        if not self.tree.exists():
            write_tree(self.tree, step.documents)
        self.app = coco.App(coco.AppConfig(name="Peers"), main, folder=self.tree)
        threading.Thread(target=self.app.update_blocking, kwargs={"live": True}, daemon=True).start()
        count = sum(len(split(text)) for text in step.documents.values())
        self._wait(lambda: self._table().count_rows() == count, 0.05)

    def apply(self, step):
        wanted = {(path, chunk) for path, text in step.changes.items() if text for chunk in split(text)}
        write_tree(self.tree, step.changes)
        if step.changes:
            self._wait(lambda: self._held(step.changes) == wanted, 0.02)

    def _wait(self, reached, pause):
        end = time.monotonic() + MOST_SECONDS
        while True:
            try:
                if reached():
                    return
            except ValueError:
                # There is no table yet.
                pass
            if time.monotonic() > end:
                raise RuntimeError(f"not in after {MOST_SECONDS} s")
            time.sleep(pause)

    def _held(self, paths):
        names = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        rows = self._table().search().where(f"path IN ({names})").select(["path", "text"]).limit(1_000_000).to_list()
        return {(row["path"], row["text"]) for row in rows}

    def _table(self):
        return lance.connect(str(self.folder / "rows")).open_table("chunks")

    def search(self, question, k):
        nearest = self._table().search(self.vectors.query(question)).metric("cosine").limit(k)
        return [(row["path"], row["text"]) for row in nearest.to_list()]

    def entries(self):
        rows = self._table().to_arrow().select(["path", "text"]).to_pylist()
        return {(row["path"], row["text"]) for row in rows}
