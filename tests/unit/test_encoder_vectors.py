"""Encoders against slow obvious versions, and models that remember them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import hbmp
from hbmp import encoders
from hbmp._core.texts import as_texts, is_texts

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
import small_encoders

TEXTS = ["The cat on the sofa", "a kitten on a couch", "bank interest", "", "an unknown word"]


def one_by_one(table, folder, texts, longest):
    """The mean of the token vectors of each text, by a loop over its words."""
    means = []
    for text in texts:
        words = text[:longest].lower().split()
        ids = [small_encoders.WORDS.index(word) if word in small_encoders.WORDS else 1 for word in words]
        total = np.zeros(table.shape[1])
        for i in ids:
            total += table[i]
        length = np.linalg.norm(total)
        means.append(total / length if length else total)
    return np.array(means)


def test_wordllama_is_the_mean_of_token_vectors(tmp_path):
    folder = small_encoders.write_table(tmp_path)
    table = load_file(folder / "table_24.safetensors")["embedding.weight"].astype(np.float32)
    for longest in (3000, 9):
        found = encoders.WordLlama(folder, longest=longest).encode(TEXTS)
        np.testing.assert_allclose(found, one_by_one(table, folder, TEXTS, longest), atol=1e-6)


def test_wordllama_reads_the_installed_package_without_importing_it(monkeypatch):
    pytest.importorskip("tokenizers")
    monkeypatch.delitem(sys.modules, "wordllama", raising=False)  # another test may have imported it
    found = encoders.get("wordllama").encode(["a cat on the sofa", "a kitten on a couch", "rising interest rates"])
    assert found.shape == (3, 256)
    assert "wordllama" not in sys.modules
    assert found[0] @ found[1] > 0.4 > found[0] @ found[2]


def test_minilm_is_the_mean_over_the_tokens_of_the_last_layer(tmp_path):
    folder = small_encoders.write_network(tmp_path)
    import onnx
    from onnx import numpy_helper

    constants = onnx.load(folder / "onnx" / "model.onnx").graph.initializer
    table = numpy_helper.to_array(next(value for value in constants if value.name == "table"))
    texts = [text for text in TEXTS if text]
    found = encoders.MiniLM(folder, batch_size=3, threads=1).encode(texts)
    np.testing.assert_allclose(found, one_by_one(table, folder, texts, 3000), atol=1e-6)
    short = encoders.MiniLM(folder, n_tokens=1, threads=1).encode(["cat dog", "cat"])
    np.testing.assert_allclose(short[0], short[1])


def test_sentence_transformers_passes_its_settings_on(monkeypatch):
    small_encoders.install_stand_in(monkeypatch)
    encoder = encoders.get("org/model", normalize=False, device="cpu")
    X = encoder.encode(TEXTS)
    assert encoder._loaded().asked == [("org/model", "cpu")]
    np.testing.assert_array_equal(X, small_encoders.StandIn("org/model").encode(
        TEXTS, batch_size=32, normalize_embeddings=False, convert_to_numpy=True, show_progress_bar=False
    ))  # fmt: skip
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match="pip install sentence-transformers, or use 'wordllama'"):
        encoders.SentenceTransformers().encode(["a"])


def test_image_backbone_gives_what_the_network_gives():
    import torch

    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    encoder = encoders.get("tiny", batch_size=2)
    X = encoder.encode(pixels)
    backbone, network, _ = encoder._loaded()
    with torch.no_grad():
        expected = network(backbone.normalise(torch.from_numpy(pixels))).numpy()
    np.testing.assert_allclose(X, expected, rtol=1e-5, atol=1e-5)
    again = encoders.get("tiny").encode(pixels)
    np.testing.assert_allclose(again, X, rtol=1e-4, atol=1e-5)  # the same random weights


def model_of(encoder, n_bits=8):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(small_encoders.WORDS[2:], size=4)) for _ in range(40)]
    return hbmp.HBMP(n_bits, random_state=0).fit(encoder.encode(texts)).with_encoder(encoder), texts


def test_other_weights_under_the_same_name_are_noticed(tmp_path):
    model, texts = model_of(encoders.WordLlama(small_encoders.write_table(tmp_path / "words")))
    model.save(tmp_path / "model")
    before = model.transform(texts)
    np.testing.assert_array_equal(hbmp.load(tmp_path / "model").transform(texts), before)
    small_encoders.write_table(tmp_path / "words", seed=1)
    with pytest.raises(ValueError, match=r"fitted on vectors of WordLlama.*weights installed here are [0-9a-f]{12}"):
        hbmp.load(tmp_path / "model").transform(texts)


def test_line_ends_of_a_tokenizer_do_not_change_the_digest(tmp_path):
    folder = small_encoders.write_table(tmp_path)
    first, second = encoders.WordLlama(folder), encoders.WordLlama(folder)
    first.encode(["cat"])
    file = folder / "tokenizer_config.json"
    file.write_bytes(file.read_bytes() + b"\n")
    second.encode(["cat"])
    assert first.digest_ == second.digest_
    assert first.same_vectors(second)
    assert not first.same_vectors(encoders.WordLlama(folder, longest=5))


def test_an_encoder_of_another_length_is_refused(tmp_path):
    encoder = encoders.WordLlama(small_encoders.write_table(tmp_path))
    model = hbmp.get_method("lsh")(4).fit(np.random.default_rng(0).standard_normal((9, 5)))
    with pytest.raises(ValueError, match="gives vectors of 24 numbers, but this LSH was fitted on 5 features"):
        model.with_encoder(encoder)


def test_texts_without_an_encoder_are_refused_with_what_to_do():
    model = hbmp.get_method("lsh")(4)
    with pytest.raises(ValueError, match=r"learns from vectors, found texts.*with_encoder\(encoder\)"):
        model.fit(["a", "b"])
    model.fit(np.random.default_rng(0).standard_normal((9, 5)))
    with pytest.raises(ValueError, match="has no encoder, found texts"):
        model.transform(["a", "b"])


def test_a_function_is_saved_by_name_and_given_again(tmp_path):
    model, texts = model_of(encoders.get(small_encoders.word_lengths), 2)
    model.save(tmp_path / "model")
    saved = (tmp_path / "model" / "model.json").read_text()
    assert "small_encoders:word_lengths" in saved
    alone = hbmp.load(tmp_path / "model")
    np.testing.assert_array_equal(alone.transform(model.input_encoder_.encode(texts)), model.transform(texts))
    with pytest.raises(ValueError, match=r"your function small_encoders:word_lengths, which is not saved: pass it"):
        alone.transform(texts)
    alone.save(tmp_path / "again")  # a model saved without its function keeps the name
    assert "small_encoders:word_lengths" in (tmp_path / "again" / "model.json").read_text()


def test_a_function_that_breaks_the_contract_is_refused():
    with pytest.raises(ValueError, match=r"one vector per item, found shape \(3,\) for 2 items"):
        encoders.get(lambda texts: [1.0, 2.0, 3.0]).encode(["a", "b"])
    with pytest.raises(ValueError, match="infinite or missing numbers"):
        encoders.get(lambda texts: [[np.nan]] * len(texts)).encode(["a", "b"])
    changing = encoders.get(lambda texts: np.ones((len(texts), len(texts[0]))))
    changing.encode(["abc"])
    with pytest.raises(ValueError, match="vectors of 3 numbers before, found 2 now"):
        changing.encode(["ab"])


def test_functions_are_named_by_their_import_path():
    encoder = encoders.get("small_encoders:word_lengths")
    assert encoder.function is small_encoders.word_lengths
    with pytest.raises(LookupError, match="No function 'small_encoders:nothing' can be imported"):
        encoders.get("small_encoders:nothing")
    with pytest.raises(LookupError, match="is a list, not a function"):
        encoders.get("small_encoders:WORDS")


def test_damaged_or_missing_weights_give_a_sentence(tmp_path):
    folder = small_encoders.write_table(tmp_path / "words")
    save_file({"a": np.zeros((2, 2)), "b": np.zeros(2)}, folder / "table_24.safetensors")
    with pytest.raises(ValueError, match=r"reads one table of token vectors; .* holds a"):
        encoders.WordLlama(folder).encode(["a"])
    (folder / "table_24.safetensors").write_bytes(b"short")
    with pytest.raises(ValueError, match="cannot be read as safetensors"):
        encoders.WordLlama(folder).encode(["a"])
    with pytest.raises(ValueError, match=r"reads one file \*.safetensors in .*, found none"):
        encoders.WordLlama(tmp_path).encode(["a"])


def test_what_counts_as_texts():
    import pandas

    for texts in (["a"], ("a", "b"), np.array(["a"]), np.array(["a"], object), pandas.Series(["a", "b"])):
        assert is_texts(texts)
        assert as_texts(texts) == list(texts)
    for other in ("a", [], [1], ["a", None], np.zeros(3), np.array([["a"]]), {"a": 1}, None, 3):
        assert not is_texts(other)
    assert as_texts(["\ud800"]) == ["?"]
    with pytest.raises(ValueError, match="found a single string"):
        as_texts("a text")
    with pytest.raises(ValueError, match="found a NoneType in it"):
        as_texts(["a", None])
