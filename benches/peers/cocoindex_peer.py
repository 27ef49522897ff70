"""CocoIndex 1: an app over a folder, one component a file, rows in SQLite with sqlite-vec; no server is needed.

The shape is that of its own code-embedding example (`localfs.walk_dir`, `mount_each` with a memoised function a file,
rows declared in a table target), with the SQLite connector of https://cocoindex.io/docs/connectors/sqlite in the place
of PostgreSQL. At every commit the changed files are written into the folder and the app is updated, the documented way
of catching up; its own state is in LMDB beside the database.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import cocoindex as coco
import numpy
import sqlite_vec
from cocoindex.connectors import localfs, sqlite
from cocoindex.resources.file import FileLike
from cocoindex.resources.id import IdGenerator
from cocoindex.resources.schema import VectorSchema
from corpus import split
from peer import Peer

DATABASE = coco.ContextKey[sqlite.ManagedConnection]("peers")
PEER = None


@dataclass
class Row:
    id: int
    path: str
    text: str
    embedding: Annotated[numpy.ndarray, VectorSchema(dtype=numpy.dtype("f4"), size=256)]


@coco.lifespan
async def lifespan(builder: coco.EnvironmentBuilder):
    builder.settings.db_path = PEER.folder / "state"
    connection = sqlite.connect(PEER.folder / "rows.sqlite", load_vec=True)
    builder.provide(DATABASE, connection)
    yield
    connection.close()


@coco.fn(memo=True)
async def process_file(file: FileLike, path: str, table: sqlite.TableTarget[Row]) -> None:
    chunks = split(await file.read_text())
    ids = IdGenerator()
    for chunk, vector in zip(chunks, PEER.vectors.documents(chunks)):
        table.declare_row(row=Row(await ids.next_id(chunk), path, chunk, vector))


@coco.fn
async def process_named(file: FileLike, root: str, table: sqlite.TableTarget[Row]) -> None:
    path = Path(file.file_path.resolve()).relative_to(root).as_posix()
    await process_file(file, path, table)


@coco.fn
async def main(folder: Path) -> None:
    table = await sqlite.mount_table_target(
        DATABASE,
        "chunks",
        await sqlite.TableSchema.from_class(Row, primary_key=["id"]),
        virtual_table_def=sqlite.Vec0TableDef(auxiliary_columns=["path", "text"]),
    )
    files = localfs.walk_dir(folder, recursive=True)
    await coco.mount_each(process_named, files.items(), str(folder), table)


class CocoIndexPeer(Peer):
    name = "CocoIndex, SQLite target"

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

    def _rows(self, query, *arguments):
        connection = sqlite3.connect(self.folder / "rows.sqlite")
        connection.enable_load_extension(True)
        sqlite_vec.load(connection)
        try:
            return connection.execute(query, arguments).fetchall()
        finally:
            connection.close()

    def search(self, question, k):
        vector = sqlite_vec.serialize_float32(self.vectors.query(question))
        found = "SELECT path, text FROM chunks WHERE embedding MATCH ? AND k = ? ORDER BY distance"
        return self._rows(found, vector, k)

    def entries(self):
        return set(self._rows("SELECT path, text FROM chunks"))
