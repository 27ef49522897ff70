"""CocoIndex 1: an app over a folder, one component a file, rows in LanceDB; no server is needed.

The shape is that of its own example examples/text_embedding_lancedb: `localfs.walk_dir`, `mount_each` with a memoised
function a file, rows declared in a table target, no index on the table, so that LanceDB compares all vectors. At every
commit the changed files are written into the folder and the app is updated, the documented way of catching up; its own
state is in LMDB beside the table.
"""

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
from corpus import split
from peer import Peer

DATABASE = coco.ContextKey[lancedb.LanceAsyncConnection]("peers")
PEER = None


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
async def process_file(file: FileLike, path: str, table: lancedb.TableTarget[Row]) -> None:
    chunks = split(await file.read_text())
    ids = IdGenerator()
    for chunk, vector in zip(chunks, PEER.vectors.documents(chunks)):
        table.declare_row(row=Row(await ids.next_id(chunk), path, chunk, vector))


@coco.fn
async def process_named(file: FileLike, root: str, table: lancedb.TableTarget[Row]) -> None:
    path = Path(file.file_path.resolve()).relative_to(root).as_posix()
    await process_file(file, path, table)


@coco.fn
async def main(folder: Path) -> None:
    schema = await lancedb.TableSchema.from_class(Row, primary_key=["id"])
    table = await lancedb.mount_table_target(DATABASE, "chunks", schema)
    files = localfs.walk_dir(folder, recursive=True)
    await coco.mount_each(process_named, files.items(), str(folder), table)


class CocoIndexPeer(Peer):
    name = "CocoIndex, LanceDB target"

    def load(self, step):
        global PEER
        PEER = self
        self.tree = self.folder / "tree"
        if not self.tree.exists():
            self._write(step.documents)
        self.app = coco.App(coco.AppConfig(name="Peers"), main, folder=self.tree)
        self._update()

    def apply(self, step):
        self._write(step.changes)
        self._update()

    def _update(self):
        self.app.update_blocking()

    def _write(self, changes):
        for path, text in changes.items():
            place = self.tree / path
            if text is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text.encode())

    def _table(self):
        return lance.connect(str(self.folder / "rows")).open_table("chunks")

    def search(self, question, k):
        nearest = self._table().search(self.vectors.query(question)).metric("cosine").limit(k)
        return [(row["path"], row["text"]) for row in nearest.to_list()]

    def entries(self):
        rows = self._table().to_arrow().select(["path", "text"]).to_pylist()
        return {(row["path"], row["text"]) for row in rows}
