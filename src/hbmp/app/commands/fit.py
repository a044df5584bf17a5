"""Fit a method on features, texts or pictures, with or without labels, and save the model with a card.

Texts are a column of a CSV, Parquet or JSON lines file, or the lines of a .txt file. They are encoded as vectors first,
and the encoder is stored in the model. With labelled pictures, a network is trained; the labels are one subfolder per
class, or lines of file,label in labels.csv or in --labels. Pictures without labels, or with --encoder, are encoded by a
pretrained network. Some rows are held out as queries. The card contains their scores against all other rows, the
checksum of the data, the settings, the seed and the command. If a run is killed, the same command continues it from
DIR.parts.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hbmp.app.commands.features import ENCODER

if TYPE_CHECKING:
    from hbmp.datasets import Data

EXAMPLE = "hbmp fit digits --bits 16 -o digits-16"
DATA = "features: .npy, .npz, .parquet, .csv, a folder; texts: a table with --column; a folder of images; or a data set"
COLUMN = "the text column, if DATA is a table of texts (default: text, or body)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Data, the method with its settings, and the output."""
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the model directory to write")
    parser.add_argument("--column", metavar="NAME", help=COLUMN)
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="one class per row, 0/1 rows, or lists: .npy, .npz, .csv, .txt, …; file,label; a column beside texts",
    )
    parser.add_argument("--encoder", metavar="NAME", help=f"{ENCODER}; features: the encoder that produced them")
    parser.add_argument("--method", default="hbmp", metavar="NAME", help="see `hbmp list methods` (default: hbmp)")
    parser.add_argument("--bits", type=int, default=32, metavar="N", help="length of the codes (default: 32)")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the method")
    parser.add_argument("--backbone", metavar="NAME", help="network for images (default: efficientnet_lite0)")
    parser.add_argument("--epochs", type=int, metavar="N", help="passes over the images (default: 30)")
    parser.add_argument(
        "--on-error", choices=("refuse", "skip"), default="refuse", help="for images that cannot be read"
    )
    parser.add_argument(
        "--holdout",
        metavar="N",
        help="number or fraction of rows to hold out, 0 for none (default: a tenth, at most 1000)",
    )
    parser.add_argument(
        "--cutoff", type=int, metavar="K", help="count only the first K ranks in the scores (default: all)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the split and the method (default: 0)"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(options: argparse.Namespace) -> None:
    """Hold rows out, fit on the others, score, save, write the card."""
    import time

    from hbmp._core.model_directory import check_free
    from hbmp._training.resuming import resumable
    from hbmp.app.inputs import read_data
    from hbmp.app.inputs.images import need_labels, without_unreadable
    from hbmp.app.outputs import check_folder
    from hbmp.app.settings import make_from_words

    options.started = time.time_ns()
    check_free(options.output)
    check_folder(options.output)
    data = read_data(options.data, options.labels, column=options.column, data_dir=options.data_dir, images=True)
    encoder = _encoder(options, data)
    need_labels(data, options.data, options.method, options.set)
    words = [*options.set, *(_network_words(options, data) if encoder is None else ())]
    model = make_from_words(options.method, options.bits, words, seed=options.seed, device=options.device)
    data = without_unreadable(data, options.on_error)
    with resumable(_parts(options)):
        _fit(options, model, data, encoder)


def _fit(options: argparse.Namespace, model: Any, data: Data, encoder: Any) -> None:
    """Everything that takes time, and the report."""
    import shlex
    import time

    import numpy as np

    from hbmp import evaluate
    from hbmp._core.progress import shown
    from hbmp.app.card import write_card
    from hbmp.app.inputs import rows_or_share
    from hbmp.evaluation import one_model

    X: Any = _vectors(options, data, encoder)
    y = data.labels
    drawn: dict[str, Any] = {"queries": rows_or_share(options.holdout), "seed": options.seed}
    rows = one_model.hold_out(X, y, **drawn).database if drawn["queries"] != 0 else np.arange(len(X))
    started = time.perf_counter()
    with shown(options.method):
        model.fit(X[rows], None if y is None else y[rows])
    seconds = time.perf_counter() - started
    if encoder is not None:
        model.with_encoder(encoder)
    about: dict[str, Any] = {
        "name": data.name,
        "note": "The queries were held out; the model was fitted on the other rows.",
    }
    found = evaluate(model, X, y, cutoff=options.cutoff, **drawn, **about) if len(rows) < len(X) else None
    model.save(options.output)
    command = shlex.join(["hbmp", *options.words])
    try:
        card = write_card(options.output, model, data, found, fit_seconds=seconds, n_train=len(rows), command=command)
    except OSError as error:
        raise OSError(
            f"The model is saved in {options.output}, but its card cannot be written: {error.strerror or error}."
        ) from error
    _report(options, model, data, encoder, found, seconds=seconds, n_rows=len(rows), card=card)


def _report(
    options: argparse.Namespace,
    model: Any,
    data: Data,
    encoder: Any,
    found: Any,
    *,
    seconds: float,
    n_rows: int,
    card: Any,
) -> None:
    import json
    from dataclasses import asdict

    recall = getattr(model, "recall_", None)
    if options.json:
        done: dict[str, Any] = {
            "model": options.output,
            "card": str(card),
            "rows": n_rows,
            "fit_seconds": round(seconds, 3),
        }
        if recall is not None:
            done["recall"] = asdict(recall)
        print(json.dumps({**done, **(found.to_json() if found else {"scores": {}})}, ensure_ascii=False))
        return
    kind = "rows" if data.features is not None else "images" if data.texts is None else "texts"
    encoded = f", encoded by {encoder.short_name}" if encoder is not None else ""
    fitted = f"{type(model).__name__} of {model.n_bits} bits, fitted on {n_rows:,} {kind} in {seconds:.1f} s{encoded}"
    parts = [f"{options.output}: {fitted}.", "" if recall is None else recall.sentence()]
    if found is not None:
        parts += [found.tables(graded=data.labels is not None), _advice(model, found)]
        parts.append(f"{card} has all scores and says how they were measured.")
    print("\n\n".join(part for part in parts if part))


def _advice(model: Any, found: Any) -> str:
    """What to do if the first results of a class are all tied."""
    first = found.first
    if first is None or first.right_kind is None or first.tied < 0.5 or getattr(model, "detail_bits", None) != 0:
        return ""
    return "To rank the items of a class, fit with --set detail_bits=auto (docs/bits.md)."


def kept(options: argparse.Namespace) -> str:
    """Describe what an interrupted run has left."""
    from pathlib import Path

    from hbmp._core.model_directory import DESCRIPTION
    from hbmp._training.resuming import something_kept

    place = Path(options.output) / DESCRIPTION
    if place.is_file() and place.stat().st_mtime_ns >= getattr(options, "started", 0):
        return f"The model is saved in {options.output}; its card is not finished."
    lost = f"No model was saved{', and the earlier one is unchanged' if place.is_file() else ''}."
    checkpoint = _checkpoint(options)
    if checkpoint is not None and any(Path(checkpoint).glob("*.safetensors")):
        return f"{lost} Run the same command again to continue from the checkpoint in {checkpoint}."
    if something_kept(parts := _parts(options)):
        return f"{lost} Run the same command again to continue from {parts}."
    return f"{lost} The same command starts from the beginning."


def _parts(options: argparse.Namespace) -> str:
    """The folder of what a killed run leaves, beside the output."""
    return f"{options.output.rstrip('/')}.parts"


def _checkpoint(options: argparse.Namespace) -> str | None:
    """The folder of checkpoints in a setting like function=["network", {"checkpoint": "folder"}]."""
    from hbmp.app.settings import read_value

    for word in options.set:
        match read_value(word.partition("=")[2]):
            case [str(), {"checkpoint": str(folder)}]:
                return folder
    return None


def _encoder(options: argparse.Namespace, data: Data) -> Any:
    """The encoder of texts, of pictures without labels, or the one that is named; None where a network is trained."""
    from hbmp.app.encoder_choice import encoder_of

    device = options.device
    if data.features is not None:
        if options.encoder is None:
            return None
        from hbmp import encoders

        return encoders.get(options.encoder)
    if data.texts is not None:
        found = encoder_of("texts", options.encoder, options.backbone, device=device)
    elif options.encoder is not None or data.labels is None:
        found = encoder_of("images", options.encoder, options.backbone, device=device)
    else:
        return None
    if options.epochs is not None:
        raise ValueError(
            f"--epochs applies only to training a network on labelled images, but {options.data} is encoded by "
            f"{found!r}."
        )
    return found


def _vectors(options: argparse.Namespace, data: Data, encoder: Any) -> Any:
    """Features, images for a network, or the vectors of texts or images, which a killed run continues."""
    import numpy as np

    if data.features is not None:
        return np.asanyarray(data.features)
    if encoder is None:
        return data.images
    from hbmp.app.encoded_items import vectors_in

    return vectors_in(_parts(options), data, encoder)


def _network_words(options: argparse.Namespace, data: Data) -> list[str]:
    """--backbone and --epochs as one setting of the method."""
    import json

    from hbmp.app.settings import read_value

    given = {name: getattr(options, name) for name in ("backbone", "epochs") if getattr(options, name) is not None}
    if not given:
        return []
    names = " and ".join(f"--{name}" for name in given)
    if data.features is not None:
        verb = "is" if len(given) == 1 else "are"
        raise ValueError(f"{names} {verb} for images, and {options.data} holds features; pass settings with --set.")
    if any(word.startswith("function=") for word in options.set):
        raise ValueError(
            f"{names} and function= in --set both choose the hash function; pass only one of these options."
        )
    if "backbone" in given:
        given["backbone"] = read_value(given["backbone"])  # a name, or with settings: ["alexnet", {"pretrained": …}]
    return [f"function={json.dumps(['network', given])}"]
