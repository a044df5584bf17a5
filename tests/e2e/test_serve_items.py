"""Over HTTP: items with names and what they carry, texts as queries, conditions, batches, and changes with a token."""

from __future__ import annotations

import json
import math
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from serving import make_texts, serving

import hbmp
from hbmp.app import cli


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    ids, rows, vectors = make_texts(folder)
    known = {"Authorization": "Bearer open"}
    with (
        serving("--index", folder / "db", "--no-map", "--token", "open") as url,
        httpx.Client(base_url=url, timeout=60, headers=known) as http,
    ):
        yield http, ids, rows, vectors, folder


def refused(response, status, words):
    assert response.status_code == status, response.text
    assert words in response.json()["detail"]


def test_a_text_finds_items_with_all_they_carry(texts):
    http, ids, rows, vectors, folder = texts
    answer = http.post("/search", json={"text": "riding a horse", "k": 3, "rescore": 24}).json()
    assert (answer["metric"], answer["mode"]) == ("cosine", "real")
    with hbmp.Database.load(folder / "db") as database:
        distances, found = database.search(["riding a horse"], 3, rescore=24)
    assert [one["id"] for one in answer["results"]] == found[0].tolist()
    assert found[0, 0] == "animals/horse & co?"
    np.testing.assert_allclose([one["distance"] for one in answer["results"]], distances[0], rtol=1e-4)
    assert answer["results"][0]["payload"] == rows[4]
    assert answer["results"][0]["label"] == "animals"
    by_vector = http.post("/search", json={"vector": vectors[4].tolist(), "k": 2}).json()
    assert (by_vector["results"][0]["id"], by_vector["mode"]) == (ids[4], "weighted")
    about = http.get("/info").json()
    assert (about["takes"], about["ids"], about["vectors"], about["changes"]) == ("texts", "text", "float32", True)
    assert about["shown"] == {"title": "title", "text": "text", "link": "url"}
    assert (about["pictures"], about["scores_of_items"]) == ("text", True)


def test_conditions_and_facets(texts):
    http, _, rows, *_ = texts
    where = {"topic": ["money", "kitchen"], "year": {">=": 2003}}
    found = http.post("/search", json={"text": "dog", "k": 50, "where": where}).json()["results"]
    matching = [row for row in rows if row["topic"] != "animals" and row["year"] >= 2003]
    key = lambda row: row["title"]  # noqa: E731
    assert sorted((one["payload"] for one in found), key=key) == sorted(matching, key=key)
    facets = http.get("/facets").json()
    assert {one["value"]: one["items"] for one in facets["topic"]} == {"animals": 8, "money": 8, "kitchen": 8}
    assert set(facets) == {"topic", "year", "label"}
    refused(http.post("/search", json={"text": "a", "where": {"size": 3}}), 422, "No column called 'size'")
    refused(http.post("/search", json={"text": "a", "where": {"year": {"~": 3}}}), 422, "A range in where takes")
    refused(http.post("/search", json={"text": "a", "where": {"year": [None]}}), 422, "In where.year")


def test_an_item_is_named_by_any_id(texts):
    http, ids, rows, *_ = texts
    for place in (0, 23):
        item = http.get(f"/items/{quote(ids[place], safe='')}").json()
        assert (item["id"], item["payload"]) == (ids[place], rows[place])
        assert http.get(f"/{item['picture']}").headers["content-type"] == "image/svg+xml"
        near = http.post("/search", json={"id": ids[place], "k": 24, "rescore": 24, "mode": "real"}).json()["results"]
        assert ids[place] not in [one["id"] for one in near]
        assert [one["relevant"] for one in near] == [one["label"] == item["label"] for one in near]
    assert http.get("/items/random").json()["id"] in ids
    refused(http.get("/items/no%2Fone"), 404, "There is no item 'no/one'")
    refused(http.post("/search", json={"id": 3}), 404, "There is no item 3")


@pytest.mark.parametrize("how", [{}, {"rescore": 12}, {"mode": "real", "n_bits": 9}, {"where": {"topic": "money"}}])
def test_a_batch_is_what_single_queries_find(texts, how):
    http, ids, _, vectors, _ = texts
    words = ["loan", "a fast horse", "kettle"]
    codes = [http.post("/encode", json={"text": one}).json()["scores"] for one in words]
    lists = {"texts": words, "vectors": vectors[:3].tolist(), "ids": ids[:3], "scores": codes}
    names = {"texts": "text", "vectors": "vector", "ids": "id", "scores": "scores"}
    for name, values in lists.items():
        if name == "scores" and "rescore" in how:
            refused(http.post("/search/batch", json={name: values, **how}), 422, "needs the vector of the query")
            continue
        together = http.post("/search/batch", json={name: values, "k": 4, **how}).json()
        alone = [http.post("/search", json={names[name]: one, "k": 4, **how}).json() for one in values]
        for found, single in zip(together["results"], alone, strict=True):
            assert [one["id"] for one in found] == [one["id"] for one in single["results"]]
            np.testing.assert_allclose(
                [one["distance"] for one in found], [one["distance"] for one in single["results"]], rtol=1e-4, atol=1e-5
            )
        assert together["metric"] == alone[0]["metric"]


@pytest.mark.parametrize(
    ("path", "question", "status", "words"),
    [
        ("/search/batch", {}, 422, "Pass one list of ids, texts, vectors or scores"),
        ("/search/batch", {"texts": []}, 422, "found 0 texts"),
        ("/search/batch", {"texts": ["a"], "ids": ["b"]}, 422, "found 1 ids and 1 texts"),
        ("/search/batch", {"texts": ["a"] * 1001}, 422, "at most 1,000 queries"),
        ("/search/batch", {"texts": ["a"] * 200, "k": 1000}, 422, "more than 100,000 results"),
        ("/search/batch", {"vectors": [[1.0]]}, 422, "The vector must have"),
        ("/search", {"text": "a", "rescore": 0}, 422, "In rescore"),
        ("/search", {"text": "a", "rescore": 10**6}, 422, "rescore must lie between 1 and 10000"),
        ("/items", {"items": []}, 422, "In items"),
        ("/items", {"items": [{"id": "x", "text": "a", "vector": [1.0]}]}, 422, "either a vector or a text"),
        ("/items", {"items": [{"id": "x", "text": "a"}, {"text": "b"}]}, 422, "an id for every new item, or for none"),
        ("/items", {"items": [{"id": "x", "text": "a"}]}, 422, "have labels"),
        ("/items", {"items": [{"id": "x", "text": "a", "label": ["b"]}]}, 422, "one class each"),
        ("/items", {"items": [{"id": 5, "text": "a", "label": "b"}]}, 422, "The ids of this database are texts"),
        ("/items/remove", {}, 422, "No items given"),
        ("/items/remove", {"where": {}}, 422, "No items given"),
    ],
)
def test_wrong_requests_get_a_sentence_and_change_nothing(texts, path, question, status, words):
    http, ids, *_ = texts
    refused(http.post(path, json=question), status, words)
    assert http.get("/healthz").json()["items"] == len(ids)


def test_items_are_added_replaced_and_removed_with_a_token(texts):
    http, *_, folder = texts
    new = {"id": "new/one", "text": "pony", "label": "animals", "payload": {"title": "Ponies", "year": 1999}}
    assert http.post("/items", json={"items": [new]}).json() == {"changed": 1, "items": 25}
    first = http.post("/search", json={"text": "pony", "k": 1, "rescore": 5}).json()["results"][0]
    assert (first["id"], first["payload"]["title"], first["payload"]["topic"]) == ("new/one", "Ponies", None)
    assert http.get("/items/new%2Fone/picture").status_code == 200
    refused(http.post("/items", json={"items": [new]}), 422, "are already in the database")
    again = {"items": [{**new, "payload": {"title": "Ponies again"}}], "replace": True}
    assert http.post("/items", json=again).json() == {"changed": 1, "items": 25}
    with hbmp.Database.load(folder / "db") as database:  # another reader of the file
        assert database.payload_of(["new/one"])[0]["title"] == "Ponies again"
    assert http.delete("/items/new%2Fone").json() == {"changed": 1, "items": 24}
    refused(http.delete("/items/new%2Fone"), 404, "There is no item 'new/one'")
    for place in (1, 2):
        http.post("/items", json={"items": [{"id": str(place), "text": "x", "label": "b", "payload": {"year": 1}}]})
    assert http.post("/items/remove", json={"where": {"year": {"<": 1900}}}).json() == {"changed": 2, "items": 24}
    assert http.post("/items/remove", json={"ids": ["nobody"]}).json() == {"changed": 0, "items": 24}
    described = http.get("/openapi.json").json()["paths"]
    assert "delete" in described["/items/{item_id}"]
    fields = described["/items"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert fields["items"]["items"]["properties"]["payload"]
    assert "$ref" not in str(fields)


def test_nothing_changes_without_a_token_or_on_a_folder_of_an_earlier_format(texts, tmp_path):
    from starlette.testclient import TestClient

    from hbmp.app.web.app import create_app
    from hbmp.app.web.search import Collection

    folder = texts[4]
    with hbmp.Database.load(folder / "db") as database:
        http = TestClient(create_app(Collection(database), with_map=False), base_url="http://localhost")
        for answer in (
            http.post("/items", json={"items": [{"id": "x", "text": "a", "label": "b"}]}),
            http.post("/items/remove", json={"ids": ["x"]}),
            http.delete("/items/x"),
        ):
            refused(answer, 403, "only on a server with a token")
        database._fixed = "This database can only be read"
        http = TestClient(
            create_app(Collection(database), with_map=False, token="t"),
            base_url="http://localhost",
            headers={"Authorization": "Bearer t"},
        )
        refused(http.post("/items/remove", json={"ids": ["x"]}), 422, "can only be read")


def test_numbers_that_json_lacks_are_null_and_huge_ones_are_refused(tmp_path, capsys):
    from starlette.testclient import TestClient

    from hbmp.app.web.app import create_app
    from hbmp.app.web.search import Collection

    X = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
    payload = [{"price": math.inf, "n": row, "more": [math.nan, 1.5]} for row in range(20)]
    model = hbmp.get_method("lsh")(8, random_state=0).fit(X)
    with hbmp.Database.build(model, X, payload=payload, path=tmp_path / "db") as database:
        http = TestClient(create_app(Collection(database), with_map=False), base_url="http://localhost")
        assert http.get("/items/3").json()["payload"] == {"price": None, "n": 3, "more": [None, 1.5]}
        found = http.post("/search", json={"vector": X[3].tolist(), "k": 1}).json()["results"]
        assert found[0]["payload"]["price"] is None
        question = {"vector": X[3].tolist(), "where": {"n": 10**30}}
        refused(http.post("/search", json=question), 422, "does not fit in 64 bits")
    np.save(tmp_path / "q.npy", X[3:4])
    assert cli.main(["search", str(tmp_path / "db"), str(tmp_path / "q.npy"), "-k", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told[0]["results"][0]["payload"]["price"] is None
