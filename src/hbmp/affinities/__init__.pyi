# Written by scripts/write_stubs.py: the eager form of the lazy imports in __init__.py.

from hbmp.affinities._shared.base import Affinity as Affinity
from hbmp.affinities.centred import Centred as Centred
from hbmp.affinities.class_similarity import ClassSimilarity as ClassSimilarity
from hbmp.affinities.distance_levels import DistanceLevels as DistanceLevels
from hbmp.affinities.label_overlap import LabelOverlap as LabelOverlap
from hbmp.affinities.mean_features import MeanFeatures as MeanFeatures
from hbmp.affinities.precomputed import Precomputed as Precomputed
from hbmp.affinities.same_class import SameClass as SameClass
from hbmp.affinities.shared_labels import SharedLabels as SharedLabels
