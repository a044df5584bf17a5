"""The smallest real instance of every encoder: weights of a few kilobytes in the formats of the packages.

`sentence_transformers` is not installed here, so its one class is a stand-in with the same calls.
"""

from __future__ import annotations

import sys
import types
import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from hbmp._core import catalog

WORDS = [
    "[PAD]",
    "[UNK]",
    "cat",
    "dog",
    "kitten",
    "puppy",
    "rate",
    "bank",
    "loan",
    "sofa",
    "couch",
    "the",
    "a",
    "on",
    "and",
]


def write_tokenizer(path: Path) -> None:
    """A tokenizer of whole words, in the file format of the package tokenizers."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(path))


def write_table(folder: Path, seed: int = 0) -> Path:
    """Token vectors as WordLlama has them."""
    folder.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(seed).standard_normal((len(WORDS), 24)).astype(np.float16)
    save_file({"embedding.weight": table}, folder / "table_24.safetensors")
    write_tokenizer(folder / "tokenizer_config.json")
    return folder


def write_network(folder: Path, seed: int = 0) -> Path:
    """An ONNX network with the inputs of MiniLM: the last layer is the vector of each token, with its type added."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(seed).standard_normal((len(WORDS), 12)).astype(np.float32)
    whole = ["input_ids", "attention_mask", "token_type_ids"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "tokens"]) for name in whole]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["n", "tokens", 12])
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),
        helper.make_node("Unsqueeze", ["token_type_ids", "axes"], ["types"]),
        helper.make_node("Cast", ["types"], ["shift"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["vectors", "shift"], ["last_hidden_state"]),
    ]
    constants = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([2]), "axes")]
    graph = helper.make_graph(nodes, "tiny", inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "onnx" / "model.onnx")
    write_tokenizer(folder / "tokenizer.json")
    return folder


class StandIn(torch.nn.Module):
    """The calls of `sentence_transformers.SentenceTransformer` that the encoder makes."""

    def __init__(self, name: str, device: str | None = None):
        super().__init__()
        self.asked = [(name, device)]
        self.table = torch.nn.Parameter(torch.from_numpy(np.random.default_rng(len(name)).standard_normal((50, 6))))

    def encode(self, sentences, *, batch_size, normalize_embeddings, convert_to_numpy, show_progress_bar):
        assert isinstance(sentences, list)
        assert convert_to_numpy
        assert not show_progress_bar
        rows = [[zlib.crc32(word.encode()) % 50 for word in text.split()] or [0] for text in sentences]
        vectors = np.stack([self.table.detach().numpy()[ids].mean(axis=0) for ids in rows]).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if normalize_embeddings else vectors


def install_stand_in(monkeypatch) -> None:
    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = StandIn
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


def word_lengths(texts):
    """A function of the user's own."""
    return [[len(text), text.count("a"), text.count(" ")] for text in texts]


def smallest(name: str, folder: Path):
    """An encoder by its name; its weights are written into the folder."""
    cls = catalog.load("encoders", name)
    if name == "wordllama":
        return cls(write_table(folder / "words"))
    if name == "minilm":
        return cls(write_network(folder / "network"), threads=1, batch_size=2)
    if name == "sentence_transformers":
        return cls("a/model")
    if name == "custom":
        return cls(word_lengths)
    return cls(**cls.smoke)


def items_for(encoder, n: int = 5):
    """Items of different lengths or contents."""
    if encoder.takes == "images":
        return np.random.default_rng(0).integers(0, 256, (n, 40, 48, 3), dtype=np.uint8)
    rng = np.random.default_rng(1)
    return [" ".join(rng.choice(WORDS[2:], size=1 + 3 * i)) for i in range(n)]
