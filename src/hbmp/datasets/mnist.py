"""MNIST in its official IDX layout: 70,000 handwritten digits of 28 × 28 pixels.

The authors' own page no longer serves the files; two mirrors hold the same bytes.
"""

from __future__ import annotations

from hbmp.datasets._shared.base import Remote
from hbmp.datasets._shared.idx import IDXDataSet

_PLACES = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")


def _remote(filename: str, size: int, sha256: str, md5: str) -> Remote:
    mirrors = tuple(place + filename for place in _PLACES[1:])
    return Remote(_PLACES[0] + filename, filename, size, sha256, md5, mirrors)


class MNIST(IDXDataSet):
    """Handwritten digits: 60,000 images to train and 10,000 to test.

    Examples
    --------
    >>> from hbmp import datasets
    >>> len(datasets.get("mnist").files)
    4
    """

    title = "MNIST"
    files = (
        _remote(
            "train-images-idx3-ubyte.gz",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        ),
        _remote(
            "train-labels-idx1-ubyte.gz",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "d53e105ee54ea40749a09fcbcd1e9432",
        ),
        _remote(
            "t10k-images-idx3-ubyte.gz",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "9fb629c4189551a2d022fa330f9573f3",
        ),
        _remote(
            "t10k-labels-idx1-ubyte.gz",
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    )
    licence = "CC BY-SA 3.0; cite LeCun, Cortes and Burges, The MNIST database of handwritten digits."
    label_names = tuple("0123456789")
