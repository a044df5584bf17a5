"""A database as a vector store of LlamaIndex.

    store = LlamaIndexStore.new(dimension=512, path="notes.db")
    index = VectorStoreIndex(nodes, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=…)
    index.as_retriever(similarity_top_k=5, filters=…).retrieve("how do I reset my password?")

Codes propose candidates, which the kept float16 vectors rank by their cosine. All filter operators work, alone and
combined by "and", "or" and "not"; equality, ranges and lists of values under "and" are the fast ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from hbmp.database.adapters import documents
from hbmp.database.database import Database
from hbmp.encoders import Encoder
from hbmp.hasher import Hasher

_SIGNS = {"==": "=", ">": ">", "<": "<", ">=": ">=", "<=": "<=", "in": "="}  # others also hold for missing values


class EncoderEmbedding(BaseEmbedding):
    """An encoder of `hbmp.encoders` as the embedding model of LlamaIndex.

    Parameters
    ----------
    encoder : Encoder
        An encoder of texts.

    Examples
    --------
    >>> import hbmp
    >>> from hbmp.database.adapters.llama_index import EncoderEmbedding
    >>> encoder = hbmp.encoders.Custom(lambda texts: [[len(text), text.count("a")] for text in texts])
    >>> EncoderEmbedding(encoder).get_query_embedding("banana")
    [6.0, 3.0]
    """

    _encoder: Encoder = PrivateAttr()

    def __init__(self, encoder: Encoder, **kwargs: Any):
        super().__init__(model_name=type(encoder).__name__, **kwargs)
        self._encoder = encoder

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [[float(number) for number in row] for row in self._encoder.encode(texts)]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class LlamaIndexStore(BasePydanticVectorStore):
    """A `hbmp.Database` with the methods of a LlamaIndex vector store.

    Parameters
    ----------
    database : Database
        The database, whose model takes the vectors of the nodes.

    Examples
    --------
    >>> from llama_index.core.schema import TextNode
    >>> from llama_index.core.vector_stores.types import VectorStoreQuery
    >>> from hbmp.database.adapters.llama_index import LlamaIndexStore
    >>> store = LlamaIndexStore.new(dimension=2)
    >>> store.add([TextNode(id_="a", text="east", embedding=[1, 0]), TextNode(id_="b", text="north", embedding=[0, 1])])
    ['a', 'b']
    >>> store.query(VectorStoreQuery([0.1, 1.0], similarity_top_k=1)).nodes[0].text
    'north'
    """

    stores_text: bool = True
    _database: Database = PrivateAttr()

    def __init__(self, database: Database, **kwargs: Any):
        super().__init__(stores_text=True, **kwargs)
        self._database = database

    @classmethod
    def new(
        cls,
        *,
        dimension: int | None = None,
        sample: Any = None,
        model: Hasher | None = None,
        n_bits: int = 256,
        path: str | Path | None = None,
        vectors: str = "float16",
    ) -> LlamaIndexStore:
        """Make an empty database.

        Parameters
        ----------
        dimension : int, default=None
            Length of the vectors, for codes of random hyperplanes.
        sample : array-like of shape (n, dimension), default=None
            Vectors to learn the codes from; better with a thousand or more.
        model : Hasher, default=None
            A fitted model of such vectors. One of `dimension`, `sample` and `model` is needed.
        n_bits : int, default=256
            Length of the codes without a model.
        path : path, default=None
            The file to write; in memory if None.
        vectors : {"float32", "float16", "int8"}, default="float16"
            How the vectors are kept.

        Returns
        -------
        LlamaIndexStore
        """
        given = [value for value in (dimension, sample, model) if value is not None]
        if len(given) != 1:
            raise ValueError(f"Pass one of dimension, sample and model, found {len(given)}.")
        if model is not None:
            rows = np.zeros((1, int(model.n_features_in_)))
        else:
            rows = np.eye(1, dimension) if dimension is not None else np.asarray(sample)
        return cls(documents.make(rows, model=model, n_bits=n_bits, path=path, kind=vectors))

    @property
    def client(self) -> Database:
        """The database."""
        return self._database

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes in one transaction; those with known ids replace the earlier ones. Gives their ids."""
        if not nodes:
            return []
        ids = [node.node_id for node in nodes]
        texts = [node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]
        payload = documents.payload_of(texts, [_columns_of(node) for node in nodes])
        rows = np.array([node.get_embedding() for node in nodes], np.float32)
        self._database.add(rows, ids=ids, payload=payload, replace=True)
        return ids

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        if "ref_doc_id" in self._database.columns:
            self._database.remove(where={"ref_doc_id": ref_doc_id})

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by ids, by filters, or by both; at least one is needed."""
        where, ids = self._chosen(node_ids, None, filters)
        self._database.remove(ids, where=where)

    def clear(self) -> None:
        """Delete all nodes."""
        self._database.remove(self._database.ids)

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Nodes by ids, by filters, or by both; all of them without either."""
        where, ids = self._chosen(node_ids, None, filters)
        found = self._database.find(where or {}).tolist()
        return self._nodes([one for one in found if ids is None or one in set(ids)])

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nearest nodes with their similarities: cosines where vectors are kept."""
        if query.mode != VectorStoreQueryMode.DEFAULT or query.query_embedding is None:
            raise ValueError(f"Only queries by vector are supported (mode 'default'), found mode {query.mode.value!r}.")
        # A retriever of an index passes an empty list for "any node".
        where, ids = self._chosen(query.node_ids or None, query.doc_ids or None, query.filters)
        distances, found = documents.nearest(
            self._database, query.query_embedding, query.similarity_top_k, where, ids, kwargs.get("rescore")
        )
        near = documents.similarities(self._database, distances, query.query_embedding)
        return VectorStoreQueryResult(nodes=self._nodes(found), similarities=near, ids=found)

    def _nodes(self, ids: list[str]) -> list[BaseNode]:
        rows = self._database.payload_of(ids) if ids else []
        return [metadata_dict_to_node(row, text=row[documents.TEXT]) for row in rows if row is not None]

    def _chosen(
        self, node_ids: Any, doc_ids: Any, filters: MetadataFilters | None
    ) -> tuple[dict[str, Any] | None, list[str] | None]:
        """Conditions, and ids for filters that conditions cannot express."""
        where: dict[str, Any] | None = _as_where(filters, self._database.filterable)
        ids = None if node_ids is None else set(node_ids)
        if filters is not None and where is None:
            met = self._meeting(filters)
            ids = met if ids is None else ids & met
        if doc_ids is not None:
            where = {**(where or {}), "ref_doc_id": list(doc_ids)}
        return where, None if ids is None else sorted(ids)

    def _meeting(self, filters: MetadataFilters) -> set[str]:
        """Ids of the nodes that meet filters of any form."""
        sets = [
            self._meeting(one) if isinstance(one, MetadataFilters) else self._meeting_one(one)
            for one in filters.filters
        ]
        every = set(self._database.ids.tolist())
        if filters.condition == FilterCondition.OR:
            return set().union(*sets)
        if filters.condition == FilterCondition.NOT:
            return every - set().union(*sets)
        return every.intersection(*sets)

    def _meeting_one(self, one: MetadataFilter) -> set[str]:
        column = documents.column_of(one.key)
        ids = self._database.ids.tolist()
        if column not in self._database.columns:
            values = [None] * len(ids)
        else:
            values = [(row or {}).get(column) for row in self._database.payload_of(ids, [column])]
        return {name for name, value in zip(ids, values, strict=True) if _meets(one, value)}


def _columns_of(node: BaseNode) -> dict[str, Any]:
    """Metadata for filters, and the whole node as JSON without its text and vector."""
    whole = node_to_metadata_dict(node, remove_text=True, flat_metadata=False)
    for twice in ("document_id", "doc_id"):  # all three name the document
        whole.pop(twice)
    return {**whole, "ref_doc_id": node.ref_doc_id}


def _as_where(filters: MetadataFilters | None, columns: Collection[str]) -> dict[str, Any] | None:
    """Filters as conditions of a database; None if conditions cannot express them, or if there are none."""
    if filters is None or (filters.condition or FilterCondition.AND) != FilterCondition.AND:
        return None
    where: dict[str, Any] = {}
    for one in filters.filters:
        if isinstance(one, MetadataFilters) or one.operator.value not in _SIGNS or one.value is None:
            return None
        column, sign = documents.column_of(one.key), _SIGNS[one.operator.value]
        if column not in columns or column in where:
            return None
        where[column] = one.value if sign == "=" else {sign: one.value}
    return where


def _meets(one: MetadataFilter, value: Any) -> bool:
    """Whether a value meets a filter, as the filters of LlamaIndex's own store have it."""
    sign, wanted = one.operator, cast(Any, one.value)
    if sign == FilterOperator.IS_EMPTY:
        return value in (None, "", [])
    if value is None:
        return sign in (FilterOperator.NE, FilterOperator.NIN)
    tests: dict[FilterOperator, Any] = {
        FilterOperator.EQ: lambda: value == wanted,
        FilterOperator.NE: lambda: value != wanted,
        FilterOperator.GT: lambda: value > wanted,
        FilterOperator.LT: lambda: value < wanted,
        FilterOperator.GTE: lambda: value >= wanted,
        FilterOperator.LTE: lambda: value <= wanted,
        FilterOperator.IN: lambda: value in wanted,
        FilterOperator.NIN: lambda: value not in wanted,
        FilterOperator.CONTAINS: lambda: wanted in value,
        FilterOperator.TEXT_MATCH: lambda: wanted in value,
        FilterOperator.TEXT_MATCH_INSENSITIVE: lambda: wanted.lower() in value.lower(),
        FilterOperator.ALL: lambda: all(part in value for part in wanted),
        FilterOperator.ANY: lambda: any(part in value for part in wanted),
    }
    return bool(tests[sign]())
