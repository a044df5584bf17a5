"""What a table of the paper is made of: parts, each one protocol, one score, the paper's rows, and our cells for them.

A part names the data that serve it, best first. Where only a stand-in is at hand it is used and named; where nothing
is, the part says what is missing and how to get it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hbmp._core import catalog
from hbmp.experiments import Cell
from hbmp.experiments.settings import METHOD_FILES, SEEDS


@dataclass(frozen=True)
class DataSource:
    """Data that can serve a part.

    stand_in : what it is instead of the paper's data, "" where it is the paper's; other_items : whether these are not
        even the paper's images, so that a difference of scores means nothing
    """

    data: str
    protocol: str
    how_to_get: str = ""
    stand_in: str = ""
    other_items: bool = False


@dataclass(frozen=True)
class TableRow:
    """A row of the paper's table: its numbers, one a code length, and the method that makes ours."""

    name: str
    paper: tuple[float, ...]
    method: str
    params: dict = field(default_factory=dict)


@dataclass(frozen=True)
class TablePart:
    """One half of a table: rows of methods, columns of code lengths, one score."""

    title: str
    sources: tuple[DataSource, ...]
    score: str
    bits: tuple[int, ...]
    rows: tuple[TableRow, ...]
    features: str = ""
    note: str = ""

    def cell(self, row: TableRow, source: DataSource, n_bits: int, seed: int) -> Cell:
        """The experiment behind one number."""
        return Cell(row.method, source.protocol, source.data, n_bits, seed, row.params)

    def cells(self, source: DataSource, *, bits=None, seeds=None) -> list[Cell]:
        """All experiments of the part that can be run: those of methods that exist here."""
        wanted = [n_bits for n_bits in self.bits if not bits or n_bits in bits]
        return [
            self.cell(row, source, n_bits, seed)
            for row in self.rows
            if row.method in catalog.names("methods")
            for n_bits in wanted
            for seed in seeds or SEEDS
        ]


def rivals(numbers: dict[str, tuple[float, ...]]) -> tuple[TableRow, ...]:
    """Rows of the methods the paper compares with, each with its default settings here."""
    return tuple(TableRow(name, values, METHOD_FILES[name]) for name, values in numbers.items())


_ENCODE = "Encode the images with {network} and save {name}/features.npy and {name}/labels.npz in the data directory."
_EFFICIENTNET = "frozen EfficientNet-Lite0 features instead of a fine-tuned VGG-F"


def cifar(protocol: str) -> tuple[DataSource, ...]:
    """CIFAR-10 with VGG-F features, or with those of another network."""
    get = _ENCODE.format(network="VGG-F", name="cifar10-vggf")
    other = _ENCODE.format(network="EfficientNet-Lite0", name="cifar10-efficientnet-lite0")
    return (
        DataSource("cifar10-vggf", protocol, get),
        DataSource("cifar10-efficientnet-lite0", protocol, other, stand_in=_EFFICIENTNET),
    )


def nus(protocol: str, *, stand_in_protocol: str) -> tuple[DataSource, ...]:
    """NUS-WIDE with VGG-F features, or MS-COCO in its place."""
    get = _ENCODE.format(network="VGG-F", name="nuswide-vggf")
    other = _ENCODE.format(network="EfficientNet-Lite0", name="coco")
    coco = f"MS-COCO images under {stand_in_protocol}, {_EFFICIENTNET}, standing in for NUS-WIDE"
    return (
        DataSource("nuswide-vggf", protocol, get),
        DataSource("coco", stand_in_protocol, other, stand_in=coco, other_items=True),
    )


def labelme() -> tuple[DataSource, ...]:
    """22K LabelMe, or GIST descriptors of as many other images."""
    stand_in = "GIST of 22,019 other images standing in for 22K LabelMe"
    return (
        DataSource("labelme", "labelme", "Ask the authors of 22K LabelMe for its GIST descriptors."),
        DataSource("gist22k", "labelme", "Compute GIST of 22,019 images.", stand_in=stand_in, other_items=True),
    )


def imagenet100() -> tuple[DataSource, ...]:
    """ImageNet100 with AlexNet features."""
    return (
        DataSource("imagenet100-alexnet", "imagenet100", _ENCODE.format(network="AlexNet", name="imagenet100-alexnet")),
    )
