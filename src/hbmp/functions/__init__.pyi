# Written by scripts/write_stubs.py: the eager form of the lazy imports in __init__.py.

from hbmp.functions._shared.base import HashFunction as HashFunction
from hbmp.functions.kernel import Kernel as Kernel
from hbmp.functions.linear import Linear as Linear
from hbmp.functions.mlp import MLP as MLP
from hbmp.functions.network import Network as Network
from hbmp.functions.trees import Trees as Trees
