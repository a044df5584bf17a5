"""Download a data set from its official place: resume, verify, unpack.

A broken download goes on where it stopped when the command is run again. `docs/datasets.md` says what is verified.
"""

from __future__ import annotations

import json
import sys

EXAMPLE = "hbmp fetch fashion-mnist --data-dir data"


def add_arguments(parser) -> None:
    """The data set and where to put it."""
    parser.add_argument("name", metavar="NAME", help="a data set; `hbmp list datasets` shows them")
    parser.add_argument("--data-dir", metavar="DIR", help="where data sets lie (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--force", action="store_true", help="download again what is there already")
    parser.add_argument(
        "--pack-images", type=int, metavar="SIDE", help="download nothing; decode image files there into one images.npy"
    )
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")


def run(options) -> None:
    """Fetch, then say what is where."""
    from hbmp.datasets import data_dir, fetch, pack_images

    if options.pack_images is not None:
        path = pack_images(data_dir(options.data_dir) / options.name, size=options.pack_images)
        print(f"Wrote {path} ({path.stat().st_size / 1e6:,.0f} MB).")
        return
    done = fetch(options.name, options.data_dir, force=options.force)
    if options.json:
        print(json.dumps({**vars(done), "folder": str(done.folder)}))
        return
    what = f"{done.downloaded_bytes / 2**20:.1f} MB downloaded" if done.downloaded_bytes else "already there"
    how = "SHA-256 pinned in fetch.json (none is published)" if done.pinned else "verified"
    print(f"{done.name}: {len(done.files)} files under {done.folder}, {what}, {how}.")
    if done.note:
        print(done.note, file=sys.stderr)
