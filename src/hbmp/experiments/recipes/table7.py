"""Table 7 (supplement): constant against regress with multi-level neighbours on 22K LabelMe.

Cells: HBMP without labels, plain and weighted bits, at the paper's code lengths, three seeds.
"""

from hbmp.experiments.paper import TablePart, TableRow, labelme
from hbmp.experiments.settings import LEVELS_HBMP, PAPER_LEVELS, SCHEMES, hbmp

CONSTANT = (0.837, 0.845, 0.852, 0.857, 0.870, 0.865)
REGRESS = (0.823, 0.829, 0.849, 0.866, 0.892, 0.917)

PARTS = (
    TablePart(
        title="22K LabelMe (NDCG)",
        sources=labelme(),
        score="ndcg-scaled",
        bits=(16, 24, 32, 48, 64, 96),
        features="GIST, one linear layer",
        note="The paper does not state its gain.",
        rows=tuple(
            TableRow(name, paper, "hbmp", hbmp(LEVELS_HBMP, SCHEMES[name]), {**SCHEMES[name], "affinity": PAPER_LEVELS})
            for name, paper in (("constant", CONSTANT), ("regress", REGRESS))
        ),
    ),
)
