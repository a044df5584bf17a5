# Written by scripts/write_stubs.py: the eager form of the lazy imports in __init__.py.

from hbmp.encoders._shared.base import Encoder as Encoder
from hbmp.encoders._shared.names import get as get
from hbmp.encoders.custom import Custom as Custom
from hbmp.encoders.gist import GIST as GIST
from hbmp.encoders.image_backbone import ImageBackbone as ImageBackbone
from hbmp.encoders.minilm import MiniLM as MiniLM
from hbmp.encoders.sentence_transformers import SentenceTransformers as SentenceTransformers
from hbmp.encoders.wordllama import WordLlama as WordLlama
