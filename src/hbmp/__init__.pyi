# Written by scripts/write_stubs.py: the eager form of the lazy imports in __init__.py.

from . import affinities as affinities
from . import backbones as backbones
from . import database as database
from . import datasets as datasets
from . import dedup as dedup
from . import encode as encode
from . import encoders as encoders
from . import evaluation as evaluation
from . import experiments as experiments
from . import export as export
from . import functions as functions
from . import hamming as hamming
from . import hasher as hasher
from . import images as images
from . import index as index
from . import methods as methods
from . import metrics as metrics
from . import protocols as protocols
from . import pursuit as pursuit
from . import stores as stores
from hbmp._training.resuming import resumable as resumable
from hbmp.database import Database as Database
from hbmp.dedup import deduplicate as deduplicate
from hbmp.encode import encode_dataset as encode_dataset
from hbmp.evaluation import evaluate as evaluate
from hbmp.evaluation.comparison import compare as compare
from hbmp.hasher import Hasher as Hasher
from hbmp.hasher import get_method as get_method
from hbmp.hasher import list_methods as list_methods
from hbmp.hasher import load as load
from hbmp.images import Images as Images
from hbmp.index import Index as Index
from hbmp.index.rescoring import rescore as rescore
from hbmp.methods.hbmp import HBMP as HBMP
from hbmp.pursuit import CodeBook as CodeBook
from hbmp.pursuit import infer_codes as infer_codes

__version__: str
