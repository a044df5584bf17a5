"""MS-COCO as features: 80 labels, split into queries, a training set and a further database."""

from __future__ import annotations

from hbmp.datasets.feature_arrays import FeatureArrays as _FeatureArrays


class COCO(_FeatureArrays):
    """Features of MS-COCO images with their label sets.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("coco").title
    'MS-COCO (features)'
    """

    title = "MS-COCO (features)"
    licence = "Annotations CC BY 4.0; images under the flickr terms of use."
    layout = "features.npy (n, d); labels.npz with labels (n, 80), split (0 query, 1 train, 2 database), classes, ids."
    how_to_get = "Encode the COCO images with a network of your choice and save features.npy and labels.npz."
