# Written by scripts/write_stubs.py: the eager form of the lazy imports in __init__.py.

from typing import Any

from hbmp.protocols._shared.base import Protocol as Protocol
from hbmp.protocols._shared.measure import Measure as Measure
from hbmp.protocols._shared.split import Split as Split
from hbmp.protocols.cifar_1 import Cifar1 as Cifar1
from hbmp.protocols.cifar_2 import Cifar2 as Cifar2
from hbmp.protocols.coco import COCO as COCO
from hbmp.protocols.imagenet100 import ImageNet100 as ImageNet100
from hbmp.protocols.labelme import LabelMe as LabelMe
from hbmp.protocols.nus_1 import Nus1 as Nus1
from hbmp.protocols.nus_2 import Nus2 as Nus2
from hbmp.protocols.voc2007 import VOC2007 as VOC2007

def names() -> tuple[str, ...]: ...
def get(name: str, **settings: Any) -> Protocol: ...
