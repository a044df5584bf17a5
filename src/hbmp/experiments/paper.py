"""The tables of the paper: parts, each with one protocol, one score, the paper's rows, and our cells for them.

A part lists the data that serve it, best first: the paper's own images and network, then frozen features of that
network, then a stand-in, which is named as one. Without any data, the part states what is missing and how to get it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hbmp._core import catalog
from hbmp.experiments import Cell
from hbmp.experiments.paper_setting import ALEXNET, DEEP_METHODS, VGGF, PaperSetting
from hbmp.experiments.settings import METHOD_FILES, SEEDS
from hbmp.hasher import get_method


@dataclass(frozen=True)
class DataSource:
    """Data that can be used for a part.

    Parameters
    ----------
    data : str
        Name of the data set.
    protocol : str
        Name of the protocol.
    how_to_get : str, default=""
        One sentence.
    stand_in : str, default=""
        Description of a stand-in; empty for the paper's data.
    other_items : bool, default=False
        Whether the images differ from the paper's, so that differences of scores mean nothing.
    setting : PaperSetting, default=None
        What deep methods learn from and how, where that is the paper's own setting.
    protocol_params : dict, default={}
        Settings of the protocol for methods that learn from features.

    Examples
    --------
    >>> from hbmp.experiments.paper import DataSource
    >>> DataSource("cifar10-vggf", "cifar-1").stand_in
    ''
    """

    data: str
    protocol: str
    how_to_get: str = ""
    stand_in: str = ""
    other_items: bool = False
    setting: PaperSetting | None = None
    protocol_params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TableRow:
    """A row of a table of the paper, and the method that makes ours.

    Parameters
    ----------
    name : str
        Name in the paper.
    paper : tuple of float
        The paper's numbers, one per code length.
    method : str
        Name of the method.
    params : dict, default={}
        Settings of the method.
    published : dict, default={}
        Settings of HBMP in the paper's own setting, where they differ from those of `HBMP.paper`.

    Examples
    --------
    >>> from hbmp.experiments.paper import TableRow
    >>> TableRow("ITQ", (0.237, 0.246), "itq").params
    {}
    """

    name: str
    paper: tuple[float, ...]
    method: str
    params: dict[str, Any] = field(default_factory=dict)
    published: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TablePart:
    """A part of a table: rows of methods, columns of code lengths, one score.

    Parameters
    ----------
    title : str
        Title of the part.
    sources : tuple of DataSource
        Usable data, best first.
    score : str
        Name of the score.
    bits : tuple of int
        Code lengths.
    rows : tuple of TableRow
        The paper's rows.
    features : str, default=""
        The paper's features.
    note : str, default=""
        A remark for the caption.

    Examples
    --------
    >>> from hbmp.experiments.recipes import table3
    >>> table3.PARTS[0].title
    'ImageNet100 (mAP@1K)'
    """

    title: str
    sources: tuple[DataSource, ...]
    score: str
    bits: tuple[int, ...]
    rows: tuple[TableRow, ...]
    features: str = ""
    note: str = ""

    def cell(self, row: TableRow, source: DataSource, n_bits: int, seed: int) -> Cell:
        """Return the experiment behind one number.

        Parameters
        ----------
        row : TableRow
            The row.
        source : DataSource
            The data.
        n_bits : int
            Code length.
        seed : int
            Seed.

        Returns
        -------
        Cell
            The cell.
        """
        setting = source.setting
        if setting is None or row.method not in DEEP_METHODS:
            return Cell(row.method, source.protocol, source.data, n_bits, seed, row.params, source.protocol_params)
        params = setting.params(row.method, source.protocol, row.published)
        return Cell(row.method, source.protocol, setting.images or source.data, n_bits, seed, params)

    def cells(
        self, source: DataSource, *, bits: Sequence[int] | None = None, seeds: Sequence[int] | None = None
    ) -> list[Cell]:
        """List the experiments of the part whose methods exist here and can learn from the data.

        Parameters
        ----------
        source : DataSource
            The data.
        bits : sequence of int, default=None
            Only these code lengths.
        seeds : sequence of int, default=None
            Only these seeds.

        Returns
        -------
        list of Cell
            The cells.
        """
        wanted = [n_bits for n_bits in self.bits if not bits or n_bits in bits]
        return [
            self.cell(row, source, n_bits, seed)
            for row in self.rows
            if row.method in catalog.names("methods") and _can_learn(row.method, source)
            for n_bits in wanted
            for seed in seeds or SEEDS
        ]


def _can_learn(method: str, source: DataSource) -> bool:
    """22K LabelMe has no labels, which most methods need."""
    return source.protocol != "labelme" or not get_method(method).supervised


def rivals(numbers: dict[str, tuple[float, ...]]) -> tuple[TableRow, ...]:
    """Rows of the methods that the paper compares with, each with its default settings here.

    Parameters
    ----------
    numbers : dict of str to tuple of float
        The paper's numbers by the paper's name.

    Returns
    -------
    tuple of TableRow
        The rows.

    Examples
    --------
    >>> from hbmp.experiments.paper import rivals
    >>> rivals({"SHK": (0.488,)})[0].method
    'ksh'
    """
    return tuple(TableRow(name, values, METHOD_FILES[name]) for name, values in numbers.items())


_ENCODE = (
    "`hbmp features {images} --data-dir DATA --backbone {backbone} -o DATA/{images}-{name}/features.npy` makes "
    "{images}-{name}/features.npy and its labels."
)
_EFFICIENTNET = "frozen EfficientNet-Lite0 features instead of a fine-tuned VGG-F"
_UNIT = {"normalize": True}


def _network(images: str, protocol: str, backbone: str, weights: Any) -> tuple[DataSource, DataSource]:
    """The paper's own setting, and frozen features of its network for all methods."""
    data, spelled = f"{images}-{backbone}", f'\'["{backbone}", {{"pretrained": "DATA/weights/{weights.filename}"}}]\''
    get = _ENCODE.format(images=images, backbone=spelled, name=backbone)
    frozen = f"frozen features of {backbone} instead of fine-tuning it"
    own = DataSource(data, protocol, setting=PaperSetting(images, backbone, weights), protocol_params=_UNIT)
    return own, DataSource(data, protocol, get, stand_in=frozen)


def cifar(protocol: str) -> tuple[DataSource, ...]:
    """CIFAR-10 with VGG-F, or with features of another network.

    Parameters
    ----------
    protocol : str
        Name of the protocol.

    Returns
    -------
    tuple of DataSource
        The data, best first.

    Examples
    --------
    >>> from hbmp.experiments.paper import cifar
    >>> [source.data for source in cifar("cifar-1")]
    ['cifar10-vggf', 'cifar10-vggf', 'cifar10-efficientnet-lite0']
    >>> cifar("cifar-1")[0].setting.images
    'cifar10'
    """
    other = _ENCODE.format(images="cifar10", backbone="efficientnet_lite0", name="efficientnet-lite0")
    return (
        *_network("cifar10", protocol, "vggf", VGGF),
        DataSource("cifar10-efficientnet-lite0", protocol, other, stand_in=_EFFICIENTNET),
    )


def nus(protocol: str, *, stand_in_protocol: str) -> tuple[DataSource, ...]:
    """NUS-WIDE with VGG-F, or MS-COCO instead.

    Parameters
    ----------
    protocol : str
        Name of the protocol.
    stand_in_protocol : str
        Protocol of MS-COCO.

    Returns
    -------
    tuple of DataSource
        The data, best first.

    Examples
    --------
    >>> from hbmp.experiments.paper import nus
    >>> nus("nus-1", stand_in_protocol="coco")[-1].data
    'coco'
    """
    coco = f"MS-COCO images under {stand_in_protocol}, {_EFFICIENTNET}, standing in for NUS-WIDE"
    other = "Encode the images of MS-COCO with EfficientNet-Lite0 and save coco/features.npy and coco/labels.npz."
    return (
        *_network("nuswide", protocol, "vggf", VGGF),
        DataSource("coco", stand_in_protocol, other, stand_in=coco, other_items=True),
    )


def labelme() -> tuple[DataSource, ...]:
    """22K LabelMe, GIST of its pictures computed here, or GIST descriptors of as many other images.

    Returns
    -------
    tuple of DataSource
        The data, best first.

    Examples
    --------
    >>> from hbmp.experiments.paper import labelme
    >>> [source.data for source in labelme()]
    ['labelme', 'labelme-gist', 'gist22k']
    """
    stand_in = "GIST of 22,019 other images standing in for 22K LabelMe"
    fetch = "`hbmp fetch labelme --data-dir DATA` gets the GIST descriptors of its authors."
    compute = "With the pictures alone, `hbmp features PICTURES --encoder gist -o DATA/labelme-gist/features.npy`."
    computed = "GIST of the pictures of 22K LabelMe computed here"
    return (
        DataSource("labelme", "labelme", fetch, setting=PaperSetting()),
        DataSource("labelme-gist", "labelme", compute, stand_in=computed, setting=PaperSetting()),
        DataSource("gist22k", "labelme", "Compute GIST of 22,019 images.", stand_in=stand_in, other_items=True),
    )


def imagenet100() -> tuple[DataSource, ...]:
    """ImageNet100 with AlexNet.

    Returns
    -------
    tuple of DataSource
        The data, best first.

    Examples
    --------
    >>> from hbmp.experiments.paper import imagenet100
    >>> imagenet100()[0].protocol
    'imagenet100'
    """
    return _network("imagenet100", "imagenet100", "alexnet", ALEXNET)
