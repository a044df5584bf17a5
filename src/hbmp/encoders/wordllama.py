"""Texts by the mean of static token vectors: the 256-number table in the pip package wordllama, no network, no torch.

    E    table      (n_tokens, d)   one vector per token
    C    counts     (n, n_tokens)   tokens of each text
    x    vectors    (n, d)          rows of C E, of length one

Reference: Miller, WordLlama: recycled token embeddings from large language models, 2024.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from hbmp._core.reading import reading
from hbmp.encoders._shared.base import Encoder, digest_of
from hbmp.encoders._shared.files import file_bytes, only_file, package_folder, read_table, read_tokenizer


class WordLlama(Encoder):
    """Mean of token vectors, of length one; 256 numbers per text.

    It needs the extra `text` and reads the table and the tokenizer from the installed package.

    Parameters
    ----------
    path : str or path, default=None
        A folder with one .safetensors file of token vectors and a tokenizer as .json, to read instead of the package.
    longest : int, default=3000
        Number of characters of each text that are read.

    Examples
    --------
    >>> from hbmp.encoders import WordLlama
    >>> encoder = WordLlama()
    >>> X = encoder.encode(["a cat on the sofa", "a kitten on a couch", "interest rates"])
    >>> X.shape
    (3, 256)
    >>> bool(X[0] @ X[1] > X[0] @ X[2])
    True
    """

    neutral = ("path",)

    def __init__(self, path: str | Path | None = None, *, longest: int = 3000):
        self.path = path
        self.longest = longest

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        tokenizer, table = self._loaded()
        shortened = [text[: self.longest] for text in texts]
        with reading(self._files()[1], "a tokenizer", "get the file again"):
            tokens = [found.ids for found in tokenizer.encode_batch(shortened, add_special_tokens=False)]
        ends = np.cumsum([0, *map(len, tokens)])
        columns = np.fromiter((token for ids in tokens for token in ids), np.int64, ends[-1])
        if len(columns) and int(columns.max()) >= len(table):  # SciPy would read beyond the table
            raise ValueError(
                f"The tokenizer of {self._files()[1]} knows token {columns.max()}, and the table beside it has "
                f"{len(table)} rows; use files that belong together."
            )
        counts = sparse.csr_array((np.ones(len(columns), np.float32), columns, ends), shape=(len(texts), len(table)))
        vectors: NDArray[np.float32] = normalize(counts @ table)  # the mean of an empty text is 0
        return vectors

    def _loaded(self) -> Any:
        if not hasattr(self, "_cache"):
            table, tokenizer = self._files()
            self._cache = read_tokenizer(tokenizer, "WordLlama"), read_table(table, "WordLlama")
        return self._cache

    def _files(self) -> tuple[Path, Path]:
        """Paths of the table and the tokenizer."""
        if self.path is not None:
            folder = Path(self.path)
            return only_file(folder, "*.safetensors", "WordLlama"), only_file(folder, "*tokenizer*.json", "WordLlama")
        folder = package_folder("wordllama", "WordLlama", "pip install 'hbmp[text]'.")
        return (
            only_file(folder / "weights", "*_256.safetensors", "WordLlama"),
            only_file(folder / "tokenizers", "*tokenizer*.json", "WordLlama"),
        )

    def _digest(self) -> str:
        return digest_of(map(file_bytes, self._files()))
