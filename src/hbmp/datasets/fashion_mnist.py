"""Fashion-MNIST in its official IDX layout: 70,000 pieces of clothing of 28 × 28 pixels in ten classes."""

from __future__ import annotations

from hbmp.datasets._shared.base import Remote
from hbmp.datasets._shared.idx import IDXDataSet

_PLACE = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_REPOSITORY = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"


def _remote(filename: str, size: int, md5: str) -> Remote:
    return Remote(_REPOSITORY + filename, filename, size, md5=md5, mirrors=(_PLACE + filename,))


class FashionMNIST(IDXDataSet):
    """Clothing from a shop's catalogue: 60,000 images to train and 10,000 to test.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("fashion-mnist").label_names[1]
    'Trouser'
    """

    title = "Fashion-MNIST"
    files = (
        _remote("train-images-idx3-ubyte.gz", 26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        _remote("train-labels-idx1-ubyte.gz", 29_515, "25c81989df183df01b3e8a0aad5dffbe"),
        _remote("t10k-images-idx3-ubyte.gz", 4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
        _remote("t10k-labels-idx1-ubyte.gz", 5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
    )
    licence = "MIT; cite Xiao, Rasul and Vollgraf, arXiv 1708.07747."
    label_names = (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    )
