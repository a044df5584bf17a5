"""22,019 GIST descriptors of images, as many as 22K LabelMe has: a stand-in for it, named as one."""

from __future__ import annotations

from hbmp.datasets.feature_arrays import FeatureArrays as _FeatureArrays


class GIST22K(_FeatureArrays):
    """GIST descriptors with 512 numbers per image, of 200 classes of small images.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("gist22k").stand_in_for
    '22K LabelMe'
    """

    title = "GIST of 22,019 images (a stand-in for 22K LabelMe)"
    licence = "The licence of the images described."
    layout = "gist.npy (22019, 512); classes.npy (22019,)."
    how_to_get = "Compute 512-dimensional GIST descriptors of 22,019 images and save gist.npy and classes.npy."

    features_file = "gist"
    labels_file = "classes"
    stand_in_for = "22K LabelMe"
