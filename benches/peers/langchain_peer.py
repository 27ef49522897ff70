"""LangChain: the indexing API with a record manager and a vector store, in two of its cleanup modes.

https://reference.langchain.com/python/langchain-core/indexing/api: "full" is the mode that removes what is gone, and it
has to be given everything at every run; "incremental" is given what changed, and cleans up changed sources only, so
what a deleted or renamed file held stays. The record manager is the SQL one on SQLite, the vector store Chroma's local
persistent one; both live in a folder. Batches have the size that is the default.
"""

from corpus import split
from langchain_chroma import Chroma
from langchain_classic.indexes import SQLRecordManager
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import index
from peer import Peer


class StaticEmbeddings(Embeddings):
    def __init__(self, vectors):
        self.vectors = vectors

    def embed_documents(self, texts):
        return self.vectors.documents(texts).tolist()

    def embed_query(self, text):
        return self.vectors.query(text).tolist()


class LangChainPeer(Peer):
    name = "LangChain indexing API, full"
    cleanup = "full"

    def load(self, step):
        self.store = Chroma(
            collection_name="texts",
            embedding_function=StaticEmbeddings(self.vectors),
            persist_directory=str(self.folder / "chroma"),
            collection_metadata={"hnsw:space": "cosine"},
        )
        self.records = SQLRecordManager("chroma/texts", db_url=f"sqlite:///{self.folder / 'records.sql'}")
        self.records.create_schema()
        self.apply(step)

    def apply(self, step):
        given = step.documents if self.cleanup == "full" else step.changes
        chunks = [
            Document(page_content=chunk, metadata={"source": path})
            for path, text in given.items()
            if text is not None
            for chunk in split(text)
        ]
        index(chunks, self.records, self.store, cleanup=self.cleanup, source_id_key="source", key_encoder="sha256")

    def search(self, question, k):
        found = self.store.similarity_search(question, k=k)
        return [(document.metadata["source"], document.page_content) for document in found]

    def entries(self):
        held = self.store.get(include=["documents", "metadatas"])
        return {(meta["source"], text) for meta, text in zip(held["metadatas"], held["documents"])}


class LangChainIncrementalPeer(LangChainPeer):
    name = "LangChain indexing API, incremental"
    cleanup = "incremental"
