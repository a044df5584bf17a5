"""Scores of a fitted HBMP, kept in files, so that settings which only its encoder reads are measured without training.

python benchmarks/suite.py run suite-data --validation --methods hbmp --keep kept
python benchmarks/suite_readings.py kept --output readings.jsonl
python benchmarks/suite.py regret readings.jsonl
"""

from __future__ import annotations

from pathlib import Path

import numpy as np


def keep(model, rows, path: Path) -> None:
    """Write what the encoder of a fitted HBMP works on: scores of all rows, target codes, weights, labels."""
    encoder = getattr(model, "encoder_", None)
    if encoder is None or encoder.votes is None:
        return
    parts = {}
    for name in ("query", "train", "new"):
        scores = encoder.scores(rows.features[getattr(rows, name)])
        parts[f"{name}_bits"], parts[f"{name}_scores"] = (
            scores.bits.astype(np.float16),
            scores.labels.astype(np.float16),
        )
        parts[f"{name}_labels"] = rows.labels[getattr(rows, name)]
    votes = encoder.votes
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        codes=votes.codes,
        label_rows=votes.label_rows.astype(np.uint8),
        counts=np.bincount(model.codebook_.affinity.item_of_, minlength=len(votes.codes)),
        weights=model.codebook_.weights,
        **parts,
    )
