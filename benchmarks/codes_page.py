"""The page of the documentation about code books alone and about prefixes, from the stored lines.

python benchmarks/codes_page.py      writes docs/codes.md
"""

from __future__ import annotations

from pathlib import Path

import codes_alone
import prefixes

PAGE = Path(__file__).parents[1] / "docs" / "codes.md"

TEXT = """# Codes alone and prefixes

<!-- Written by `python benchmarks/codes_page.py`; edits here are lost. -->

```bash
python benchmarks/suite_data.py suite-data --shared DATA      # the sets of the development suite
python benchmarks/codes_alone.py run suite-data
python benchmarks/prefixes.py run suite-data
python benchmarks/codes_page.py
```

mAP covers the full ranking of the database, ties averaged, as in [the development suite](suite.md).

## One function, five sources of codes

Methods differ in their code book, their function and their loss. Here the code book is all that differs. Each source
gives one code per class: HBMP (the book that its default fit chooses), SHC and MDSH (their centres), rows of a Hadamard
matrix, and random signs. One kernel function with 1,000 anchors learns the codes of all sources at once, by the hinge
loss of each bit. So all have the same anchors, batches and steps. The distance is plain Hamming distance. A Hadamard
matrix with as many rows as a set has classes does not exist at every length; these cells have a dash.

{codes}

Points of mAP by which HBMP's codes lead: the mean over sets and its 95 % interval by Student's t, and in brackets the
number of sets.

{code_leads}

Sets that were measured: {code_sets}.

## Prefixes of one 128-bit code

The first k bits of a code of HBMP are a code with weights of its own (`codebook_.weights_for(k)`). They are compared
with codes trained for k bits, and with prefixes of NHL, which trains all lengths at once. Of feature shares
that do equally well at 128 bits, a fit takes the one whose first 16, 32 and 64 bits do best. The first bits, three for
each class, are never dithered. The table was measured with class targets softened by
0.2, as today those of up to ten classes are (others: 0.1).

{prefixes}

Points of mAP by which prefixes lead: the mean over sets, and in brackets the worst set.

{prefix_leads}
"""


def page() -> str:
    """docs/codes.md."""
    alone, nested = codes_alone.stored(), prefixes.stored()
    return TEXT.format(
        codes=codes_alone.table(alone),
        code_leads=codes_alone.lead_table(alone),
        code_sets=", ".join(dict.fromkeys(line["set"] for line in alone)),
        prefixes=prefixes.table(nested),
        prefix_leads=prefixes.lead_table(nested),
    )


if __name__ == "__main__":
    PAGE.write_text(page())
