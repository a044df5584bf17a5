"""Table 3: mAP@1K on ImageNet100.

Cells: HashNet, MIHash and HBMP at the paper's code lengths, three seeds.
"""

from hbmp.experiments.paper import TablePart, TableRow, imagenet100, rivals
from hbmp.experiments.settings import BEST_HBMP, hbmp

PARTS = (
    TablePart(
        title="ImageNet100 (mAP@1K)",
        sources=imagenet100(),
        score="map@1000",
        bits=(16, 32, 48, 64),
        features="AlexNet, fine-tuned",
        rows=(
            *rivals({"HashNet": (0.506, 0.630, 0.663, 0.683), "MIHash": (0.569, 0.661, 0.685, 0.694)}),
            TableRow("HBMP", (0.574, 0.692, 0.712, 0.742), "hbmp", hbmp(BEST_HBMP)),
        ),
    ),
)
