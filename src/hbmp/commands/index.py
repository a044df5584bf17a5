"""Encode items and make them searchable: a directory with codes, ids, labels and the model.

`hbmp search` asks it, `hbmp export` writes it for other systems, `hbmp.Database.load` opens it in Python.
"""

from __future__ import annotations

EXAMPLE = "hbmp index digits-16 digits -o digits-db"


def add_arguments(parser) -> None:
    """A model, the items, and where the database goes."""
    parser.add_argument("model", metavar="MODEL", help="a model directory, from `hbmp fit`")
    parser.add_argument("data", metavar="DATA", help="features: .npy, .npz, .parquet, .csv, a folder, or a data set")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the database directory to write")
    parser.add_argument(
        "--ids", metavar="FILE", help="whole numbers, one a row: .npy, .txt, .csv (default: row numbers)"
    )
    parser.add_argument("--labels", metavar="FILE", help="labels to show with results: .npy, .npz, .csv, .txt, …")
    parser.add_argument("--kind", choices=("auto", "flat", "ivf"), default="auto", help="flat is exact (default: auto)")
    parser.add_argument("--data-dir", metavar="DIR", help="where data sets lie (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")


def run(options) -> None:
    """Encode, index, save."""
    import json

    from hbmp import Database, load
    from hbmp._inputs import read_data, read_ids

    model = load(options.model)
    data = read_data(options.data, options.labels, data_dir=options.data_dir)
    database = Database.build(
        model,
        data.features,
        ids=read_ids(options.ids) if options.ids else None,
        labels=data.labels,
        label_names=data.label_names,
        kind=options.kind,
        source={"name": data.name, "rows": len(data), "checksum": data.checksum()},
        progress=True,
    )
    database.save(options.output)
    index = database.index
    if options.json:
        done = {"database": options.output, "items": len(index), "bits": index.n_bits, "kind": index.kind}
        print(json.dumps({**done, "labels": data.labels is not None, "source": database.source}))
        return
    labelled = "" if data.labels is None else ", with labels"
    print(f"{options.output}: {len(index):,} items of {index.n_bits} bits, {index.kind}{labelled}.")
