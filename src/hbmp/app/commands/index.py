"""Encode items and make them searchable: a directory with codes, ids, labels and the model.

A folder of images is indexed with its file names; run the command again to resume a run that was stopped. `hbmp search`
searches the directory, `hbmp serve` shows it in the browser, `hbmp export` writes it for other systems, and
`hbmp.Database.load` opens it in Python.
"""

from __future__ import annotations

from hbmp.app.commands.fit import DATA

EXAMPLE = "hbmp index digits-16 digits -o digits-db"


def add_arguments(parser) -> None:
    """A model, the items, and the output."""
    parser.add_argument("model", metavar="MODEL", help="a model directory, from `hbmp fit`")
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the database directory to write")
    parser.add_argument("--replace", action="store_true", help="replace an existing database")
    parser.add_argument(
        "--ids", metavar="FILE", help="whole numbers, one per row: .npy, .txt, .csv (default: row numbers)"
    )
    parser.add_argument("--labels", metavar="FILE", help="labels to show with results: .npy, .npz, .csv, .txt, …")
    parser.add_argument(
        "--on-error", choices=("refuse", "skip"), default="refuse", help="for images that cannot be read"
    )
    parser.add_argument("--kind", choices=("auto", "flat", "ivf"), default="auto", help="flat is exact (default: auto)")
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(options) -> None:
    """Encode, index, save."""
    import json

    from hbmp import load
    from hbmp.app.indexing import check_database_place, index_data
    from hbmp.app.inputs import read_data, read_ids

    check_database_place(options.output, replace=options.replace)
    model = load(options.model)
    data = read_data(options.data, options.labels, data_dir=options.data_dir, images=True)
    ids = read_ids(options.ids) if options.ids else None
    done = index_data(
        model, data, options.data, options.output, ids=ids, kind=options.kind, on_error=options.on_error, progress=True
    )
    database = done.database
    index = database.index
    if options.json:
        about = {"database": options.output, "items": len(index), "bits": index.n_bits, "kind": index.kind}
        more = {"images": database.files is not None, "skipped": list(done.skipped)}
        print(json.dumps({**about, "labels": database.labels is not None, **more, "source": database.source}))
        return
    columns = {"labels": database.labels, "images": database.files}
    present = " and ".join(name for name, values in columns.items() if values is not None)
    extra = f", with {present}" if present else ""
    print(f"{options.output}: {len(index):,} items of {index.n_bits} bits, {index.kind}{extra}.")
    if done.n_resumed:
        print(f"{done.n_resumed:,} of them were encoded by an earlier run.")
