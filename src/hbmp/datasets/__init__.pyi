# Written by scripts/write_stubs.py: the eager form of the lazy imports in __init__.py.

from hbmp.datasets._shared.base import Data as Data
from hbmp.datasets._shared.base import DataSet as DataSet
from hbmp.datasets._shared.base import MissingData as MissingData
from hbmp.datasets._shared.base import Remote as Remote
from hbmp.datasets._shared.base import data_dir as data_dir
from hbmp.datasets._shared.base import get as get
from hbmp.datasets._shared.base import load as load
from hbmp.datasets._shared.base import names as names
from hbmp.datasets._shared.fetch import Fetched as Fetched
from hbmp.datasets._shared.fetch import fetch as fetch
from hbmp.datasets._shared.pack import pack_images as pack_images
from hbmp.datasets.cifar10 import CIFAR10 as CIFAR10
from hbmp.datasets.coco import COCO as COCO
from hbmp.datasets.digits import Digits as Digits
from hbmp.datasets.documentation import Documentation as Documentation
from hbmp.datasets.fashion_mnist import FashionMNIST as FashionMNIST
from hbmp.datasets.feature_arrays import FeatureArrays as FeatureArrays
from hbmp.datasets.gist22k import GIST22K as GIST22K
from hbmp.datasets.image_folder import ImageFolder as ImageFolder
from hbmp.datasets.imagenet100 import ImageNet100 as ImageNet100
from hbmp.datasets.labelme import LabelMe as LabelMe
from hbmp.datasets.mnist import MNIST as MNIST
from hbmp.datasets.nuswide import NUSWIDE as NUSWIDE
from hbmp.datasets.voc2007 import VOC2007 as VOC2007
