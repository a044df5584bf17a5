"""The adapters against the real base classes of LangChain and LlamaIndex, and against their stores in memory."""

from __future__ import annotations

import asyncio
import itertools

import numpy as np
import pytest

import hbmp

WORDS = ["cat", "dog", "car", "bus", "red", "blue", "old", "new"]
TEXTS = [f"{a} {b} {c}" for a, b, c in itertools.product(WORDS[:4], WORDS[4:6], WORDS[6:])]
METADATA = [
    {"animal": text.split()[0] in ("cat", "dog"), "year": 2000 + place, "colour": text.split()[1], "id": f"no {place}"}
    for place, text in enumerate(TEXTS)
]


def count_words(texts):
    return [[text.lower().split().count(word) + 0.1 for word in WORDS] for text in texts]


ENCODER = hbmp.encoders.Custom(count_words)


def cosine_order(query, allowed):
    rows = np.array(count_words([query, *TEXTS]))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return sorted(allowed, key=lambda place: -rows[0] @ rows[place + 1])


class TestLangChain:
    def store(self, path=None):
        from hbmp.database.adapters.langchain import LangChainStore

        ids = [f"t{place}" for place in range(len(TEXTS))]
        return LangChainStore.from_texts(TEXTS, ENCODER, METADATA, ids=ids, path=path)

    def test_it_answers_like_the_store_in_memory(self):
        from langchain_core.vectorstores import InMemoryVectorStore

        store = self.store()
        peer = InMemoryVectorStore(store.embeddings)
        peer.add_texts(TEXTS, METADATA, ids=[f"t{place}" for place in range(len(TEXTS))])
        for query in ("old cat blue", "new red bus red"):
            found, expected = (each.similarity_search_with_score(query, k=5) for each in (store, peer))
            np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], atol=2e-3)
            assert found[0][0] == expected[0][0]
            assert store.max_marginal_relevance_search(query, k=3)[0] == expected[0][0]
        assert store.get_by_ids(["t3", "nobody"]) == peer.get_by_ids(["t3", "nobody"])
        (close, score), *_ = store.similarity_search_with_relevance_scores("old cat blue", k=16)
        assert (close.page_content, round(score, 2)) == ("cat blue old", 1.0)

    def test_filters_retrievers_and_async(self):
        store = self.store()
        found = store.similarity_search("cat red old", k=4, filter={"animal": False, "year": {">=": 2010}})
        assert found[0].page_content == TEXTS[cosine_order("cat red old", range(10, 16))[0]]
        assert all(not one.metadata["animal"] and one.metadata["year"] >= 2010 for one in found)
        assert store.similarity_search("cat", filter={"id": "no 7"})[0].metadata == METADATA[7]
        retriever = store.as_retriever(search_kwargs={"k": 1, "filter": {"colour": ["blue"]}})
        assert retriever.invoke("dog red new")[0].metadata["colour"] == "blue"
        (one,) = asyncio.run(store.asimilarity_search("dog red new", k=1))
        assert one.page_content == "dog red new"
        with pytest.raises(ValueError, match="No column called 'size'"):
            store.similarity_search("cat", filter={"size": 3})

    def test_adding_replacing_deleting_and_opening_again(self, tmp_path):
        from langchain_core.documents import Document

        from hbmp.database.adapters.langchain import LangChainStore

        store = self.store(tmp_path / "notes.db")
        assert store.add_documents([Document("bus bus bus", metadata={"year": 1}, id="t0")]) == ["t0"]
        (new,) = store.add_texts(["dog dog dog"])
        assert len(store.database) == 17
        assert store.similarity_search("bus", k=1) == [Document("bus bus bus", metadata={"year": 1}, id="t0")]
        assert store.delete([new, "t0"])
        assert store.delete(filter={"colour": "red"})
        assert {one.metadata["colour"] for one in store.similarity_search("cat", k=50)} == {"blue"}
        with pytest.raises(ValueError, match="No items given"):
            store.delete()
        store.database.close()
        again = LangChainStore(hbmp.Database.load(tmp_path / "notes.db"), ENCODER)
        assert len(again.database) == 8
        assert again.similarity_search("cat blue new", k=1)[0].page_content == "cat blue new"
        with pytest.raises(ValueError, match="has no text encoder"):
            LangChainStore(again.database)

    def test_a_database_of_ones_own_with_integer_ids_and_without_vectors(self):
        from hbmp.database.adapters.langchain import LangChainStore

        model = hbmp.get_method("lsh")(128, random_state=0).fit(ENCODER.encode(TEXTS)).with_encoder(ENCODER)
        database = hbmp.Database.build(model, TEXTS, payload={"body": TEXTS})
        store = LangChainStore(database, text_column="body")
        (found, score), *rest = store.similarity_search_with_score("car red old", k=16)
        assert (found.page_content, found.metadata) == ("car red old", {})
        assert score > 0.9 > rest[-1][1] >= 0
        assert store.add_texts(["car car"], [{"body": "a key", "text": "b"}]) == ["16"]
        assert store.similarity_search("car", k=1)[0].metadata == {"body": "a key", "text": "b"}
        assert store.delete(["16", "x"])
        assert store.get_by_ids(["16", "3"])[0].id == "3"


def _as_node(documents, **_):
    """Each document as one node; the splitter of LlamaIndex would load a tokenizer."""
    from llama_index.core.schema import NodeRelationship, TextNode

    return [
        TextNode(
            text=one.text, metadata=one.metadata, relationships={NodeRelationship.SOURCE: one.as_related_node_info()}
        )
        for one in documents
    ]


class TestLlamaIndex:
    def nodes(self):
        from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

        rows = zip(TEXTS, METADATA, count_words(TEXTS), strict=True)
        return [
            TextNode(
                id_=f"t{place}",
                text=text,
                metadata=metadata | {"tags": text.split()},
                embedding=row,
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc {place % 3}")},
            )
            for place, (text, metadata, row) in enumerate(rows)
        ]

    def stores(self):
        from llama_index.core.vector_stores import SimpleVectorStore

        from hbmp.database.adapters.llama_index import LlamaIndexStore

        mine, peer = LlamaIndexStore.new(dimension=len(WORDS)), SimpleVectorStore()
        for store in (mine, peer):
            store.add(self.nodes())
        return mine, peer

    def test_every_filter_finds_what_the_store_in_memory_finds(self):
        from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
        from llama_index.core.vector_stores.types import VectorStoreQuery as Query

        mine, peer = self.stores()
        values = {
            "==": ("colour", "red"),
            ">": ("year", 2005),
            "<": ("year", 2005),
            "!=": ("colour", "red"),
            ">=": ("year", 2005),
            "<=": ("year", 2005),
            "in": ("colour", ["red", "green"]),
            "nin": ("colour", ["red", "green"]),
            "any": ("tags", ["cat", "bus"]),
            "all": ("tags", ["cat", "blue"]),
            "text_match": ("colour", "lu"),
            "text_match_insensitive": ("colour", "LU"),
            "contains": ("tags", "bus"),
            "is_empty": ("size", None),
        }
        assert set(values) == {operator.value for operator in FilterOperator}
        filters = [MetadataFilter(key=key, value=value, operator=operator) for operator, (key, value) in values.items()]
        vector = count_words(["cat red new"])[0]
        cases = [MetadataFilters(filters=[one]) for one in filters]
        cases += [MetadataFilters(filters=filters[:3:2], condition=how) for how in ("and", "or", "not")]
        cases.append(MetadataFilters(filters=[MetadataFilter(key="size", value="big")]))
        for case in cases:
            found, expected = (each.query(Query(vector, 16, filters=case)) for each in (mine, peer))
            assert set(found.ids) == set(expected.ids), case
            np.testing.assert_allclose(found.similarities, expected.similarities, atol=2e-3)
        nested = MetadataFilters(filters=[MetadataFilters(filters=filters[:2]), filters[2]], condition="or")
        assert {node.metadata["year"] for node in mine.get_nodes(filters=nested)} == {
            row["year"] for row in METADATA if (row["colour"] == "red" and row["year"] > 2005) or row["year"] < 2005
        }

    def test_nodes_come_back_whole_and_are_deleted(self, tmp_path):
        from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
        from llama_index.core.vector_stores.types import VectorStoreQuery as Query

        from hbmp.database.adapters.llama_index import LlamaIndexStore

        store = LlamaIndexStore.new(sample=count_words(TEXTS), n_bits=64, path=tmp_path / "notes.db")
        nodes = self.nodes()
        store.add(nodes)
        for node in nodes:
            node.embedding = None
        assert store.get_nodes(["t4"]) == [nodes[4]]
        assert store.query(Query(count_words(["bus"])[0], 1, node_ids=["t1", "t2"])).ids[0] in ("t1", "t2")
        assert {one.ref_doc_id for one in store.query(Query([1.0] * 8, 9, doc_ids=["doc 2"])).nodes} == {"doc 2"}
        store.delete("doc 0")
        assert len(store.client) == 10
        store.delete_nodes(["t1", "t2"])
        store.delete_nodes(filters=MetadataFilters(filters=[MetadataFilter(key="colour", value="red")]))
        assert {node.metadata["colour"] for node in store.get_nodes()} == {"blue"}
        store.client.close()
        again = LlamaIndexStore(hbmp.Database.load(tmp_path / "notes.db"))
        assert again.get_nodes()
        again.clear()
        assert again.query(Query([1.0] * 8, 3)).ids == []
        with pytest.raises(ValueError, match="Pass one of dimension, sample and model"):
            LlamaIndexStore.new()

    def test_an_index_of_llamaindex_uses_it_with_an_encoder(self):
        from llama_index.core import Document, StorageContext, VectorStoreIndex

        from hbmp.database.adapters.llama_index import EncoderEmbedding, LlamaIndexStore

        store = LlamaIndexStore.new(dimension=len(WORDS))
        context = StorageContext.from_defaults(vector_store=store)
        given = [Document(text=text, metadata=row) for text, row in zip(TEXTS, METADATA, strict=True)]
        embed = EncoderEmbedding(ENCODER)
        index = VectorStoreIndex.from_documents(given, context, embed_model=embed, transformations=[_as_node])
        (found,) = index.as_retriever(similarity_top_k=1).retrieve("dog blue old")
        assert found.text == "dog blue old"
        index.delete_ref_doc(found.node.ref_doc_id)
        assert len(store.client) == 15
