"""Texts by any model of the package sentence-transformers, by its name or folder.

sentence-transformers is not a requirement of this package. It downloads a model when it is first used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.encoders._shared.base import Encoder, digest_of


class SentenceTransformers(Encoder):
    """Model of sentence-transformers.

    Parameters
    ----------
    name : str, default="all-MiniLM-L6-v2"
        Name of the model, such as "BAAI/bge-small-en-v1.5", or its folder.
    normalize : bool, default=True
        Scale every vector to length one.
    batch_size : int, default=32
        Texts per pass of the network.
    device : str, default=None
        Device of torch; chosen by sentence-transformers if None.

    Examples
    --------
    >>> from hbmp.encoders import SentenceTransformers
    >>> SentenceTransformers("BAAI/bge-small-en-v1.5")  # encode() needs sentence-transformers
    SentenceTransformers(name='BAAI/bge-small-en-v1.5')
    """

    neutral = ("batch_size", "device")

    def __init__(
        self,
        name: str = "all-MiniLM-L6-v2",
        *,
        normalize: bool = True,
        batch_size: int = 32,
        device: str | None = None,
    ):
        self.name = name
        self.normalize = normalize
        self.batch_size = batch_size
        self.device = device

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._loaded().encode(
            texts,
            batch_size=self.batch_size,
            normalize_embeddings=self.normalize,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return vectors

    def _loaded(self) -> Any:
        if not hasattr(self, "_cache"):
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError:
                raise ImportError(
                    f"The encoder {self.name!r} needs sentence-transformers: pip install sentence-transformers, or use "
                    "'wordllama' or 'minilm', which need no torch."
                ) from None
            self._cache = SentenceTransformer(self.name, device=self.device)
        return self._cache

    def _digest(self) -> str:
        """Of every weight, by name; the same model in another format or precision has another digest."""
        tensors = sorted(self._loaded().state_dict().items())
        return digest_of(name.encode() + tensor.detach().cpu().float().numpy().tobytes() for name, tensor in tensors)
