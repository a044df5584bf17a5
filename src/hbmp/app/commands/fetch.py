"""Download a data set from its official source, verify and unpack it.

Run the command again to resume an interrupted download. docs/datasets.md lists the checks.
"""

from __future__ import annotations

import argparse
import json
import sys

EXAMPLE = "hbmp fetch fashion-mnist --data-dir data"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The data set and the data directory."""
    parser.add_argument("name", metavar="NAME", help="a data set, see `hbmp list datasets`")
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--force", action="store_true", help="download files again even if they exist")
    parser.add_argument(
        "--pack-images",
        type=int,
        metavar="SIDE",
        help="download nothing; decode the image files of the data set into one images.npy",
    )
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def kept(options: argparse.Namespace) -> str:
    """Describe what an interrupted run has left."""
    return "Run the same command again" + (" to continue." if options.pack_images is None else ".")


def run(options: argparse.Namespace) -> None:
    """Fetch the data set and print where it is."""
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
