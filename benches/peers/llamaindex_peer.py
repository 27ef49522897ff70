"""LlamaIndex: an ingestion pipeline with a document store, strategy upserts-and-delete, as its guides set it up.

https://developers.llamaindex.ai/python/examples/ingestion/document_management_pipeline: documents with stable ids, a
docstore so that unchanged documents are skipped, a vector store attached so that changed and absent ones are removed
from it, `persist` between runs. The vector store is Chroma's local persistent one, which lives in a folder.
The whole tree is given at every commit: the strategy removes what it is not given.
"""

import chromadb
from corpus import split
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser.interface import TextSplitter
from llama_index.core.schema import Document, MetadataMode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import VectorStoreQuery
from llama_index.vector_stores.chroma import ChromaVectorStore, base
from peer import Peer

# Called back by pydantic models that cannot hold an arbitrary object of ours.
VECTORS = None


class Splitter(TextSplitter):
    def split_text(self, text):
        return split(text)


class Embedding(BaseEmbedding):
    def _get_text_embedding(self, text):
        return VECTORS.documents([text])[0].tolist()

    def _get_text_embeddings(self, texts):
        return VECTORS.documents(texts).tolist()

    def _get_query_embedding(self, query):
        return VECTORS.query(query).tolist()

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


class LlamaIndexPeer(Peer):
    name = "LlamaIndex ingestion pipeline"

    def load(self, step):
        global VECTORS
        VECTORS = self.vectors
        client = chromadb.PersistentClient(path=str(self.folder / "chroma"))
        # 0.6.0 inserts up to 41,665 rows at once; a local Chroma refuses more than this, so a first load would fail.
        base.MAX_CHUNK_SIZE = client.get_max_batch_size()
        self.collection = client.get_or_create_collection("texts", metadata={"hnsw:space": "cosine"})
        self.store = ChromaVectorStore(chroma_collection=self.collection)
        self.pipeline = IngestionPipeline(
            transformations=[Splitter(), Embedding(embed_batch_size=256)],
            docstore=SimpleDocumentStore(),
            vector_store=self.store,
            docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        )
        if (self.folder / "pipeline").exists():
            self.pipeline.load(str(self.folder / "pipeline"))
        self.apply(step)

    def apply(self, step):
        # Metadata would be embedded in front of the text by default; the peers are to have the same vectors.
        documents = [
            Document(
                text=text,
                id_=path,
                metadata={"path": path},
                excluded_embed_metadata_keys=["path"],
                excluded_llm_metadata_keys=["path"],
            )
            for path, text in step.documents.items()
        ]
        self.pipeline.run(documents=documents)

    def persist(self):
        self.pipeline.persist(str(self.folder / "pipeline"))

    def search(self, question, k):
        query = VectorStoreQuery(query_embedding=self.vectors.query(question).tolist(), similarity_top_k=k)
        nodes = self.store.query(query).nodes
        return [(node.metadata["path"], node.get_content(MetadataMode.NONE)) for node in nodes]

    def entries(self):
        held = self.collection.get(include=["documents", "metadatas"])
        return {(meta["path"], text) for meta, text in zip(held["metadatas"], held["documents"])}
