"""Table 1: mAP on CIFAR-10 (cifar-1) and mAP@5K on NUS-WIDE (nus-1), few training images.

Cells: every method of the table that exists here, at the paper's code lengths, three seeds.
"""

from hbmp.experiments.paper import TablePart, TableRow, cifar, nus, rivals
from hbmp.experiments.settings import BEST_HBMP, hbmp

BITS = (12, 24, 32, 48)

PARTS = (
    TablePart(
        title="CIFAR-10 (mAP), cifar-1",
        sources=cifar("cifar-1"),
        score="map",
        bits=BITS,
        features="VGG-F, fine-tuned for the deep methods",
        rows=(
            *rivals(
                {
                    "SH": (0.183, 0.164, 0.161, 0.161),
                    "ITQ": (0.237, 0.246, 0.255, 0.261),
                    "SHK": (0.488, 0.539, 0.548, 0.563),
                    "SDH": (0.478, 0.557, 0.584, 0.592),
                    "FastHash": (0.553, 0.607, 0.619, 0.636),
                    "StructHash": (0.664, 0.693, 0.691, 0.700),
                    "VDSH": (0.538, 0.541, 0.545, 0.548),
                    "DPSH": (0.713, 0.727, 0.744, 0.757),
                    "DTSH": (0.710, 0.750, 0.765, 0.774),
                    "MIHash": (0.738, 0.775, 0.791, 0.816),
                }
            ),
            TableRow("HBMP", (0.799, 0.804, 0.830, 0.831), "hbmp", hbmp(BEST_HBMP)),
        ),
    ),
    TablePart(
        title="NUS-WIDE (mAP@5K), nus-1",
        sources=nus("nus-1", stand_in_protocol="coco"),
        score="map@5000",
        bits=BITS,
        features="VGG-F, fine-tuned for the deep methods",
        rows=(
            *rivals(
                {
                    "SH": (0.621, 0.616, 0.615, 0.612),
                    "ITQ": (0.719, 0.739, 0.747, 0.756),
                    "SHK": (0.768, 0.804, 0.815, 0.824),
                    "SDH": (0.780, 0.804, 0.816, 0.824),
                    "FastHash": (0.779, 0.807, 0.816, 0.825),
                    "StructHash": (0.748, 0.772, 0.790, 0.801),
                    "VDSH": (0.769, 0.796, 0.803, 0.807),
                    "DPSH": (0.758, 0.793, 0.818, 0.830),
                    "DTSH": (0.773, 0.813, 0.820, 0.838),
                    "MIHash": (0.773, 0.820, 0.831, 0.843),
                }
            ),
            TableRow("HBMP", (0.757, 0.805, 0.822, 0.840), "hbmp", hbmp(BEST_HBMP)),
        ),
    ),
)
