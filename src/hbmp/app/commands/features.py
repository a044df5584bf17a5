"""Compute feature vectors of texts or pictures and write them to one .npy file, one row per item.

Texts are a column of a CSV, Parquet or JSON lines file, or the lines of a .txt file. Pictures are a folder, Parquet
with a column of images, or a data set by its name, whose labels are written next to the features. Items are read in
blocks, so the data may be larger than memory. If a run is interrupted, the same command resumes it. `hbmp fit` encodes
texts and pictures itself, so it does not need this command.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hbmp.encode.featuring import ItemSource

EXAMPLE = "hbmp features texts.parquet --column body -o x.npy"
ENCODER = (
    "texts: wordllama (default, fast), minilm, a sentence-transformers model as ORG/NAME, or your own function as "
    "package.module:function; pictures: gist, or a backbone"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Data, the encoder, and the output."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="texts: .csv, .tsv, .parquet, .jsonl, .txt; pictures: a folder, .parquet, a data set",
    )
    parser.add_argument("--data-dir", metavar="DIR", help="where a data set lies (default: $HBMP_DATA, else ./data)")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the .npy file to write")
    parser.add_argument("--column", metavar="NAME", help="the text column (default: text, or body)")
    parser.add_argument("--encoder", metavar="NAME", help=ENCODER)
    parser.add_argument(
        "--backbone", metavar="NAME", help="network for pictures (default: efficientnet_lite0); see `hbmp list`"
    )
    parser.add_argument("--dtype", choices=("float32", "float16"), default="float32", help="default: float32")
    parser.add_argument("--names", metavar="FILE", help="also write the names of the pictures, one per line")
    parser.add_argument(
        "--on-error", choices=("refuse", "skip"), default="refuse", help="for pictures that cannot be read"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda, for backbones (default: auto)")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(options: argparse.Namespace) -> None:
    """Encode block by block and print the shape."""
    import json
    from pathlib import Path

    from hbmp._core.files import check_place, write_into_place
    from hbmp.app.encoder_choice import encoder_of
    from hbmp.encode.featuring import write_features

    if not options.output.endswith(".npy"):
        raise ValueError(f"Features are written as .npy; call the output {Path(options.output).stem}.npy.")
    if _is_data_set(options):
        _write_data_set(options)
        return
    check_place(options.output)
    check_place(options.names)
    source = _texts(options) if _is_table(options) else _pictures(options)
    items, names = source
    takes = "images" if names is not None else "texts"
    encoder = encoder_of(takes, options.encoder, options.backbone, device=options.device)
    resumed = write_features(encoder, items, options.output, dtype=options.dtype, progress=True)
    if options.names is not None:
        write_into_place(options.names, "".join(f"{name}\n" for name in names or ()))
    about = {"output": options.output, "rows": items.n, "features": encoder.n_features, "encoder": encoder.about()}
    if options.json:
        print(json.dumps({**about, "resumed": resumed}, ensure_ascii=False))
        return
    print(f"{options.output}: {items.n:,} vectors of {encoder.n_features} numbers, by {encoder.about()}.")
    if resumed:
        print(f"{resumed:,} of them were computed by an earlier run.")


def kept(options: argparse.Namespace) -> str:
    """Describe what an interrupted run has left."""
    from pathlib import Path

    part = f"{options.output}.part"
    if not (Path(part).exists() and Path(f"{part}.json").exists()):
        return f"{options.output} is as it was, or whole."
    return f"Run the same command again to continue from the vectors in {part}."


def _is_data_set(options: argparse.Namespace) -> bool:
    """Whether the data are a data set by its name."""
    from pathlib import Path

    from hbmp import datasets

    return options.data in datasets.names() and not Path(options.data).exists()


def _write_data_set(options: argparse.Namespace) -> None:
    """Encode the pictures of a data set to its features and labels."""
    from pathlib import Path

    from hbmp import datasets
    from hbmp.app.encoder_choice import encoder_of
    from hbmp.experiments.encoded import write_encoded

    output, data = Path(options.output), datasets.load(options.data, options.data_dir)
    if data.images is None:
        raise ValueError(f"The data set {options.data} has no pictures here to encode.")
    if output.name != "features.npy" or options.names is not None:
        raise ValueError(
            "The features of a data set are a data set too: write NAME/features.npy in the data directory, without "
            "--names; the labels are written beside it."
        )
    encoder = encoder_of("images", options.encoder, options.backbone, device=options.device)
    write_encoded(data, encoder, output.parent, dtype=options.dtype)
    print(f"{output}: {len(data):,} vectors of {encoder.n_features} numbers, by {encoder.about()}, and their labels.")


def _is_table(options: argparse.Namespace) -> bool:
    """Whether the data are texts; anything that is neither texts nor pictures is refused."""
    from pathlib import Path

    from hbmp.app.inputs.images import is_folder_of_images, is_parquet_of_images
    from hbmp.app.inputs.item_table import TABLE_ENDINGS
    from hbmp.images.files import is_image_file

    path = Path(options.data)
    if not path.exists():
        raise ValueError(f"There is no file or folder {options.data}.")
    if options.column is None and (is_parquet_of_images(path) or is_folder_of_images(path) or is_image_file(path)):
        return False
    if path.is_dir() or path.suffix.lower() not in TABLE_ENDINGS:
        raise ValueError(
            f"{options.data} holds neither texts nor pictures; texts are in files that end in "
            f"{', '.join(TABLE_ENDINGS)}, pictures in a folder."
        )
    return True


def _texts(options: argparse.Namespace) -> tuple[ItemSource, list[str] | None]:
    """The texts of a column, read from the file a block at a time."""
    from itertools import islice
    from pathlib import Path

    from hbmp.app.inputs.item_table import ItemTable
    from hbmp.encode.featuring import ItemSource, stamp_of

    if options.names is not None:
        raise ValueError("--names applies to pictures; texts have no file names.")
    table, rows = ItemTable(options.data), 1024
    column = table.text_column(options.column)
    if not len(table):
        raise ValueError(f"{options.data} holds no texts.")

    def blocks(start: int) -> Iterator[Any]:
        return islice(table.text_blocks(column, rows), start // rows, None)

    facts = Path(options.data).stat()
    stamp = stamp_of(Path(options.data).resolve(), facts.st_size, facts.st_mtime_ns, column)
    return ItemSource(len(table), rows, blocks, stamp), None


def _pictures(options: argparse.Namespace) -> tuple[ItemSource, list[str] | None]:
    """The pictures of a folder, and their names."""
    from hbmp._training.fingerprint import fingerprint_files
    from hbmp.app.inputs import read_data
    from hbmp.app.inputs.images import without_unreadable
    from hbmp.encode.featuring import ItemSource, stamp_of

    data = without_unreadable(read_data(options.data, images=True), options.on_error)
    images, rows = data.images, 256

    def blocks(start: int) -> Iterator[Any]:
        return (images[at : at + rows] for at in range(start, len(images), rows))

    names = images.names
    _, files = images.origin()
    stamp = stamp_of(images.folder, *names, fingerprint_files(files))
    return ItemSource(len(images), rows, blocks, stamp), names
