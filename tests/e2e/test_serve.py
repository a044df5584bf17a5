"""The server as a client meets it: every route, every limit, the token; what it finds is what the database finds."""

from __future__ import annotations

import io
import json
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib

import httpx
import numpy as np
import pytest
from serving import N_BITS, make_digits, make_pictures, serving

import hbmp


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    X, y, model = make_digits(folder)
    words = ["--thumbnails", folder / "thumbnails.npy", "--features", folder / "features.npy"]
    limits = ["--max-k", "50", "--max-upload", "0.2", "--max-concurrent", "4"]
    with (
        serving(folder / "model", "--index", folder / "db", *words, *limits) as url,
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        yield http, X, y, model, folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    images, model = make_pictures(folder)
    words = ["--images", folder / "pictures", "--max-pixels", "0.1", "--max-upload", "0.1", "--no-map"]
    with serving("--index", folder / "db", *words) as url, httpx.Client(base_url=url) as http:
        yield http, images, model, folder


def refused(response, status, words):
    assert response.status_code == status, response.text
    assert set(response.json()) == {"detail"}
    assert words in response.json()["detail"]
    return response


def test_a_vector_finds_what_the_database_finds(digits):
    http, X, _, _, folder = digits
    database = hbmp.Database.load(folder / "db")
    for real in (False, True):
        distances, ids = database.search(X[:5], 7, real_valued=real)
        for row in range(5):
            asked = {"vector": X[row].tolist(), "k": 7, "mode": "real" if real else "weighted"}
            answer = http.post("/search", json=asked).json()
            assert [found["id"] for found in answer["results"]] == ids[row].tolist()
            found = [found["distance"] for found in answer["results"]]
            np.testing.assert_allclose(found, distances[row], rtol=1e-5, atol=1e-7)  # one row at a time, or five


@pytest.mark.parametrize("n_bits", [1, 9, N_BITS])
@pytest.mark.parametrize("mode", ["plain", "weighted", "real"])
def test_prefixes_and_modes_are_the_distances_they_promise(digits, n_bits, mode):
    http, X, y, model, _ = digits
    codes = model.transform(X)[:, :n_bits]
    query = model.project(X[[3]])[:, :n_bits] if mode == "real" else codes[[3]]
    weights = np.ones(n_bits) if mode == "plain" else model.weights_for(n_bits)
    truth = hbmp.hamming.distances(query, codes, weights)[0]
    order = [item for item in np.lexsort((np.arange(len(X)), truth)) if item != 3][:20]
    answer = http.post("/search", json={"id": 3, "k": 20, "n_bits": n_bits, "mode": mode}).json()
    assert [found["id"] for found in answer["results"]] == order
    assert [found["relevant"] for found in answer["results"]] == (y[order] == y[3]).tolist()
    assert [found["label"] for found in answer["results"]] == [str(label) for label in y[order]]
    np.testing.assert_allclose(answer["weights"], weights)
    assert set(answer["milliseconds"]) == {"encode", "search"}


def test_encode_gives_the_models_code_and_its_scores_search_again(digits):
    http, X, _, model, _ = digits
    coded = http.post("/encode", json={"vector": X[8].tolist()}).json()
    assert coded["code"] == model.transform(X[[8]])[0].tolist()
    np.testing.assert_allclose(coded["scores"], model.project(X[[8]])[0], rtol=1e-5)
    np.testing.assert_allclose(coded["weights"], model.bit_weights_)
    direct = http.post("/search", json={"vector": X[8].tolist(), "mode": "real"}).json()
    again = http.post("/search", json={"scores": coded["scores"], "mode": "real"}).json()
    assert again["results"] == direct["results"]


def test_items_their_pictures_and_random_ones(digits):
    from PIL import Image

    http, X, y, model, _ = digits
    item = http.get("/items/17").json()
    assert (item["id"], item["label"]) == (17, str(y[17]))
    assert item["code"] == model.transform(X[[17]])[0].tolist()
    assert item["features"] == X[17].tolist()
    picture = http.get(f"/{item['picture']}")
    assert picture.headers["content-type"] == "image/png"
    pixels = np.asarray(Image.open(io.BytesIO(picture.content)))
    assert (pixels[..., 0] == (X[17].reshape(8, 8) * 15.9).astype(np.uint8)).all()
    seen = {http.get("/items/random").json()["id"] for _ in range(12)}
    assert len(seen) > 6
    refused(http.get("/items/1797"), 404, "There is no item 1797.")
    refused(http.get("/items/1797/picture"), 404, "There is no item 1797.")
    refused(http.get("/items/seven"), 404, "There is no item 'seven'")
    refused(http.post("/search", json={"id": 5000}), 404, "There is no item 5000")


def test_the_first_results_of_a_sample_are_described(digits):
    http, X, _, model, _ = digits
    told = http.get("/codes").json()["first_results"]
    codes = model.transform(X)
    assert re.search(r"^Of the first ten results, (9\d|100) % share a label with the query\.", told), told
    assert f"{len(X):,} items have {hbmp.metrics.distinct_codes(codes):,} distinct codes." in told
    assert "should be found" not in told  # this database keeps no vectors


def test_codes_and_map_show_the_code_book(digits):
    http, X, _, model, _ = digits
    told = http.get("/codes").json()
    assert told["names"] == [str(digit) for digit in range(10)]
    assert told["codes"] == model.codebook_.codes.tolist()
    wanted = model.codebook_.affinity.block(np.arange(10), np.arange(10), device="cpu")
    np.testing.assert_allclose(told["affinity"], wanted, atol=1e-3)
    assert (np.array(told["affinity"]).argmax(axis=1) == np.arange(10)).all()
    truth = hbmp.hamming.distances(model.codebook_.codes, model.codebook_.codes, model.bit_weights_)
    np.testing.assert_allclose(told["distances"], truth, atol=1e-3)
    np.testing.assert_allclose(told["residuals"], model.codebook_.relative_residuals, atol=1e-4)
    deadline = time.monotonic() + 120
    while (found := http.get("/map").json())["state"] == "working" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert found["state"] == "ready"
    places = {point["id"]: (point["x"], point["y"]) for point in found["points"]}
    assert set(places) == set(range(len(X)))
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places.values())
    codes = model.transform(X)
    same, other = np.flatnonzero((codes == codes[0]).all(axis=1)), np.flatnonzero((codes != codes[0]).any(axis=1))
    assert all(places[item] == places[0] for item in same.tolist())
    assert any(places[item] != places[0] for item in other.tolist())


def test_health_metrics_info_and_description(digits):
    http, X, *_ = digits
    assert http.get("/healthz").json() == {"status": "ok", "items": len(X)}
    about = http.get("/info").json()
    assert (about["method"], about["n_bits"], about["takes"], about["n_features"]) == ("HBMP", N_BITS, "vectors", 64)

    def searches():
        lines = http.get("/metrics").text.splitlines()
        wanted = 'hbmp_requests_total{method="POST",route="/search",status="200"} '
        return sum(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))

    before = searches()
    for item in range(3):
        http.post("/search", json={"id": item})
    assert searches() == before + 3
    assert f"hbmp_items {float(len(X))}" in http.get("/metrics").text
    described = http.get("/openapi.json").json()
    assert {"/encode", "/search", "/items/{item_id}", "/search/batch", "/items", "/healthz", "/metrics"} <= set(
        described["paths"]
    )
    example = described["paths"]["/search"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert http.post("/search", json=example).status_code == 200


@pytest.mark.parametrize("path", ["/", "/docs", "/static/app.js", "/static/style.css", "/static/codes.js"])
def test_the_page_asks_no_one_else(digits, path):
    http = digits[0]
    response = http.get(path)
    assert response.status_code == 200
    text = response.text.replace("http://www.w3.org/2000/svg", "")
    assert "http://" not in text
    assert "https://" not in text
    assert 'src="//' not in text
    assert response.headers["content-security-policy"].startswith("default-src 'self'")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (
            {"vector": [1.0] * 63},
            "The vector must have 64 numbers, as the model was fitted on that many features; found 63.",
        ),
        ({"vector": [1e39] * 64}, "The vector must contain finite numbers that fit in 32 bits"),
        ({"vector": ["one"] * 64}, "In vector.0: input should be a valid number"),
        ({"scores": [0.5]}, f"The scores must have {N_BITS} numbers"),
        ({"id": 0, "k": 51}, "k must lie between 1 and 50, found 51."),
        ({"id": 0, "k": 0}, "In k: input should be greater than or equal to 1, found 0."),
        ({"id": 0, "n_bits": N_BITS + 1}, f"These codes have {N_BITS} bits, found n_bits={N_BITS + 1}."),
        ({"id": 0, "n_bits": 0}, "In n_bits"),
        ({"id": 0, "mode": "cosine"}, "In mode"),
        ({"id": 1.5}, "In id"),
        ({"id": 0, "bits": 3}, "In bits: extra inputs are not permitted"),
        ({}, "Pass one of id, text, vector, scores or an image; found none of them."),
        ({"id": 0, "vector": [1.0] * 64}, "found id, vector."),
    ],
)
def test_wrong_questions_get_a_sentence(digits, question, words):
    refused(digits[0].post("/search", json=question), 422, words)


def test_numbers_that_are_not_finite_and_text_that_is_not_json(digits):
    http = digits[0]
    for number in ("NaN", "Infinity", "1e999"):
        body = f'{{"vector": [{", ".join([number] * 64)}]}}'
        refused(http.post("/search", content=body), 422, "finite")
    refused(http.post("/search", content=b"{"), 422, "In the body: invalid JSON")
    refused(http.post("/encode", json={"id": 0, "k": 3}), 422, "In k: extra inputs are not permitted")
    refused(http.get("/nothing"), 404, "There is nothing at /nothing")
    assert http.get("/search").status_code == 405


def test_bodies_are_refused_by_size_announced_or_not(digits):
    http = digits[0]
    large = json.dumps({"vector": [0.5] * 300_000}).encode()
    refused(http.post("/search", content=large), 413, "at most 1,048,576 bytes")

    def in_parts():  # without a length in the head
        for start in range(0, len(large), 65_536):
            yield large[start : start + 65_536]

    refused(http.post("/search", content=in_parts()), 413, "at most 1,048,576 bytes")
    refused(http.post("/search", files={"image": b"x" * 300_000}), 413, "may have at most")


def test_a_crowd_is_told_when_to_come_again_and_the_place_is_free_afterwards(digits):
    """Four senders hold the places by bodies that do not end; the fifth is refused, health is not."""
    http = digits[0]
    head = f"POST /search HTTP/1.1\r\nHost: {http.base_url.host}\r\nContent-Length: 100\r\n\r\n{{".encode()
    held = [socket.create_connection((http.base_url.host, http.base_url.port)) for _ in range(4)]
    try:
        for sender in held:
            sender.sendall(head)
        deadline = time.monotonic() + 20
        inside = "hbmp_requests_in_flight 5.0"  # the four, and the one that asks; a search would take a place itself
        while inside not in http.get("/metrics").text and time.monotonic() < deadline:
            time.sleep(0.05)
        answer = http.post("/search", json={"id": 0})
        refused(answer, 503, "4 requests are being processed")
        assert answer.headers["retry-after"] == "1"
        assert http.get("/healthz").status_code == 200
    finally:
        for sender in held:
            sender.close()
    deadline = time.monotonic() + 20
    while (answer := http.post("/search", json={"id": 0})).status_code == 503 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert answer.status_code == 200


def test_many_threads_get_the_answers_one_gets(digits):
    http = digits[0]
    alone = {item: http.post("/search", json={"id": item}).json()["results"] for item in range(12)}
    found = {}

    def ask(item):
        with httpx.Client(base_url=http.base_url) as own:
            while (answer := own.post("/search", json={"id": item})).status_code == 503:
                time.sleep(0.02)
            found[item] = answer.json()["results"]

    threads = [threading.Thread(target=ask, args=(item,)) for item in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone


def test_an_image_finds_its_like_and_itself(pictures):
    http, images, model, folder = pictures
    path = folder / "pictures" / images.names[20]
    coded = http.post("/encode", files={"image": path.read_bytes()}).json()
    np.testing.assert_allclose(coded["scores"], model.project(images[[20]])[0], rtol=1e-4, atol=1e-5)
    answer = http.post("/search", files={"image": path.read_bytes()}, data={"k": "5", "n_bits": "6", "mode": "real"})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["n_bits"], len(answer.json()["results"])) == (6, 5)
    by_item = http.post("/search", json={"id": 20, "mode": "real", "k": 5}).json()
    assert by_item["scores"] == pytest.approx(coded["scores"], rel=1e-4, abs=1e-5)
    assert http.get("/items/20/picture").headers["content-type"] == "image/png"
    assert http.get("/items/20").json()["label"] == images.labels[20]
    assert http.get("/info").json()["takes"] == "images"


def bomb(side):
    """The head of a PNG that would unpack to side² pixels."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    )


def test_files_that_are_no_images_or_too_many_pixels_are_refused(pictures):
    http = pictures[0]
    refused(http.post("/search", files={"image": bomb(400)}), 413, "found 400 × 400")
    refused(http.post("/search", files={"image": bomb(50_000)}), 413, "pixels at most")
    refused(http.post("/search", files={"image": b"%!PS-Adobe-3.0 EPSF-3.0\n"}), 415, "not a readable image")
    refused(http.post("/search", files={"image": bomb(100)}), 422, "cannot be read as an image")
    refused(http.post("/search", files={"image": b"x" * 200_000}), 413, "may have at most")
    refused(http.post("/search", files=[("image", b"a"), ("image", b"b")]), 422, "send one image")
    refused(http.post("/search", files={"image": (None, "words")}), 422, "contains no file")
    refused(http.post("/search", json={"vector": [1.0]}), 422, "This model takes images")


def test_a_vector_model_takes_no_image(digits, pictures):
    picture = pictures[3] / "pictures" / pictures[1].names[0]
    refused(digits[0].post("/search", files={"image": picture.read_bytes()}), 422, "takes vectors of 64 numbers")


@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_token_guards_all_but_health_and_the_empty_page(digits, by):
    folder = digits[4]
    words, environment = (["--token", "sésame"], {}) if by == "option" else ([], {"HBMP_TOKEN": "sésame"})
    server = serving("--index", folder / "db", "--no-map", *words, environment=environment)
    with server as url, httpx.Client(base_url=url) as http:
        for path in ("/items/0", "/items/random", "/info", "/codes", "/map", "/metrics", "/openapi.json"):
            assert refused(http.get(path), 401, "Authorization: Bearer").headers["www-authenticate"] == "Bearer"
        refused(http.post("/search", json={"id": 0}), 401, "needs a token")
        refused(http.post("/encode", json={"id": 0}, headers={"Authorization": "Bearer wrong"}), 401, "needs a token")
        assert http.get("/healthz").status_code == 200
        assert http.get("/").status_code == 200
        known = {"Authorization": "Bearer sésame".encode()}
        assert http.post("/search", json={"id": 0}, headers=known).status_code == 200
        # Without features an item has its signs alone, and its picture shows them.
        refused(http.post("/search", json={"id": 0, "mode": "real"}, headers=known), 422, "not their scores")
        assert http.get("/items/0/picture", headers=known).headers["content-type"] == "image/svg+xml"
        assert http.get("/items/0", headers=known).json()["features"] is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--index", "nowhere"], "There is no database nowhere"),
        (["other", "--index", "db"], "contain different models"),
        (["--index", "db", "--thumbnails", "few.npy"], "found 5 pictures; give one per item, or one per id."),
        (["--index", "db", "--features", "few.npy"], "found 5 rows of features"),
        (["--index", "db", "--images", "nowhere"], "The image folder nowhere does not exist"),
        (["--index", "db", "--host", "256.0.0.1"], "Cannot listen at 256.0.0.1:8000"),
        (["--index", "db", "--port", "99999"], "The port must lie between 0 and 65535, found 99999"),
        (["--index", "db", "--max-k", "0"], "--max-k must be above 0, found 0."),
    ],
)
def test_mistakes_at_the_start_are_one_sentence(digits, words, sentence):
    _, X, y, _, folder = digits
    if not (folder / "few.npy").exists():
        np.save(folder / "few.npy", np.zeros((5, 8) if "--features" in words else (5, 8, 8), np.uint8))
        hbmp.get_method("pca_sign")(N_BITS).fit(X, y).save(folder / "other")
    if "--features" in words:
        np.save(folder / "few.npy", np.zeros((5, 8), np.float32))
    done = subprocess.run(
        [sys.executable, "-m", "hbmp", "serve", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
