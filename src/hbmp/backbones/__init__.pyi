# Written by scripts/write_stubs.py: the eager form of the lazy imports in __init__.py.

from hbmp.backbones._shared.base import Backbone as Backbone
from hbmp.backbones.alexnet import AlexNet as AlexNet
from hbmp.backbones.efficientnet_lite0 import EfficientNetLite0 as EfficientNetLite0
from hbmp.backbones.module import Module as Module
from hbmp.backbones.timm_model import TimmModel as TimmModel
from hbmp.backbones.tiny import Tiny as Tiny
from hbmp.backbones.vggf import VGGF as VGGF
