"""A database as a vector store of LangChain.

    store = LangChainStore.from_texts(texts, embedding, metadatas, path="notes.db")
    store.similarity_search("how do I reset my password?", k=4, filter={"product": "router", "year": {">=": 2024}})

`embedding` is an `Embeddings` of LangChain or an encoder of `hbmp.encoders`. Codes propose 10 k candidates, which the
kept float16 vectors rank by their cosine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from hbmp.database.adapters import documents
from hbmp.database.database import Database
from hbmp.encoders import Encoder
from hbmp.hasher import Hasher

Where = Mapping[str, Any]


class EncoderEmbeddings(Embeddings):
    """An encoder of `hbmp.encoders` as the embeddings of LangChain.

    Parameters
    ----------
    encoder : Encoder
        An encoder of texts.

    Examples
    --------
    >>> import hbmp
    >>> from hbmp.database.adapters.langchain import EncoderEmbeddings
    >>> encoder = hbmp.encoders.Custom(lambda texts: [[len(text), text.count("a")] for text in texts])
    >>> EncoderEmbeddings(encoder).embed_query("banana")
    [6.0, 3.0]
    """

    def __init__(self, encoder: Encoder):
        self.encoder = encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts."""
        return cast(list[list[float]], self.encoder.encode(texts).tolist())

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        return self.embed_documents([text])[0]


class LangChainStore(VectorStore):
    """A `hbmp.Database` with the methods of a LangChain vector store.

    Parameters
    ----------
    database : Database
        The database. Its payload has the texts in one column; the other columns are metadata.
    embedding : Embeddings or Encoder, default=None
        What turns texts into the vectors that the database's model takes; the model's own encoder if None.
    text_column : str, default="text"
        The column of texts.

    Examples
    --------
    >>> import hbmp
    >>> from hbmp.database.adapters.langchain import LangChainStore
    >>> encoder = hbmp.encoders.Custom(lambda texts: [[text.count(letter) for letter in "aeiou"] for text in texts])
    >>> store = LangChainStore.from_texts(["banana", "kiwi"], encoder, [{"kind": "long"}, {"kind": "round"}])
    >>> store.similarity_search("papaya", k=1)[0].page_content
    'banana'
    >>> store.similarity_search("papaya", k=1, filter={"kind": "round"})[0].page_content
    'kiwi'
    """

    def __init__(
        self, database: Database, embedding: Embeddings | Encoder | None = None, *, text_column: str = documents.TEXT
    ):
        found = getattr(database.model, "input_encoder_", None) if embedding is None else embedding
        if found is None:
            raise ValueError("The model of this database has no text encoder: pass embedding=….")
        self.database, self.text_column = database, text_column
        self._embedding = EncoderEmbeddings(found) if isinstance(found, Encoder) else found

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | Encoder,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        model: Hasher | None = None,
        n_bits: int = 256,
        path: str | Path | None = None,
        vectors: str = "float16",
        **kwargs: Any,
    ) -> LangChainStore:
        """Make a database of texts.

        Parameters
        ----------
        texts : list of str
            The texts.
        embedding : Embeddings or Encoder
            What turns texts into vectors.
        metadatas : list of dict, default=None
            Metadata of each text: texts, numbers, booleans, lists.
        ids : list of str, default=None
            Distinct ids; random ones if None.
        model : Hasher, default=None
            A fitted model of such vectors. Otherwise codes of `n_bits` are learned from the vectors of these texts, or
            are random hyperplanes for fewer than a thousand texts.
        n_bits : int, default=256
            Length of the codes without a model.
        path : path, default=None
            The file to write; in memory if None.
        vectors : {"float32", "float16", "int8"}, default="float16"
            How the vectors are kept.

        Returns
        -------
        LangChainStore
        """
        embeddings = EncoderEmbeddings(embedding) if isinstance(embedding, Encoder) else embedding
        texts = list(texts)
        rows = embeddings.embed_documents(texts)
        store = cls(documents.make(rows, model=model, n_bits=n_bits, path=path, kind=vectors), embeddings, **kwargs)
        store._add(texts, rows, metadatas, ids)
        return store

    @property
    def embeddings(self) -> Embeddings:
        """The embedding of queries."""
        return self._embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts in one transaction; those with known ids replace the earlier ones. Gives their ids."""
        listed = list(texts)
        return self._add(listed, self._embedding.embed_documents(listed), metadatas, ids) if listed else []

    def delete(self, ids: list[str] | None = None, *, filter: Where | None = None, **kwargs: Any) -> bool:
        """Delete by ids, by conditions, or by both; at least one is needed."""
        known = None if ids is None else [documents.as_id(self.database, one) for one in ids]
        self.database.remove(known, where=documents.conditions_of(filter, self.text_column))
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids that exist."""
        return self._documents([documents.as_id(self.database, one) for one in ids])

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The nearest documents; `filter` maps metadata to values, lists of values or ranges, as `Database.search`."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """The nearest documents to a vector."""
        return [document for document, _ in self._nearest(embedding, k, **kwargs)]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """The nearest documents and their similarities: cosines where vectors are kept. Higher is closer."""
        return self._nearest(self._embedding.embed_query(query), k, **kwargs)

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Near documents that differ from each other."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Near documents that differ from each other, by the kept vectors."""
        near = [document for document, _ in self._nearest(embedding, fetch_k, **kwargs)]
        if not near:
            return []
        rows = self.database.vectors_of([documents.as_id(self.database, str(one.id)) for one in near])
        chosen = maximal_marginal_relevance(np.array(embedding), list(rows), lambda_mult, k)
        return [near[place] for place in chosen]

    def _select_relevance_score_fn(self) -> Any:
        return lambda similarity: min(1.0, max(0.0, similarity))

    def _add(self, texts: list[str], rows: Any, metadatas: Any, ids: Sequence[str | None] | None) -> list[str]:
        n = len(texts)
        for name, values in (("metadatas", metadatas), ("ids", ids)):
            if values is not None and len(values) != n:
                raise ValueError(f"There are {n} texts but {len(values)} {name}; pass one per text.")
        payload = documents.payload_of(texts, [{}] * n if metadatas is None else metadatas, self.text_column)
        found = documents.new_ids(self.database, [None] * n if ids is None else ids)
        self.database.add(np.asarray(rows, np.float32), ids=found, payload=payload, replace=True)
        return [str(one) for one in found]

    def _nearest(
        self, vector: Any, k: int, *, filter: Where | None = None, rescore: int | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        where = documents.conditions_of(filter, self.text_column)
        distances, found = documents.nearest(self.database, vector, k, where, None, rescore)
        near = documents.similarities(self.database, distances, vector)
        return list(zip(self._documents(found), near, strict=False))

    def _documents(self, ids: list[Any]) -> list[Document]:
        rows = zip(ids, self.database.payload_of(ids), strict=True) if ids else ()
        return [
            Document(
                id=str(one),
                page_content=row.get(self.text_column) or "",
                metadata=documents.metadata_in(row, self.text_column),
            )
            for one, row in rows
            if row is not None
        ]
