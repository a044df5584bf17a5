"""Fit a method on features and labels and save the model with a card.

Some rows are held out first and never fitted on; the card has the scores they give as queries to all other rows, with
the data's checksum, the settings, the seed and the command.
"""

from __future__ import annotations

EXAMPLE = "hbmp fit digits --bits 16 -o digits-16"


def add_arguments(parser) -> None:
    """Data, the method with its settings, and where the model goes."""
    parser.add_argument("data", metavar="DATA", help="features: .npy, .npz, .parquet, .csv, a folder, or a data set")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the model directory to write")
    parser.add_argument(
        "--labels", metavar="FILE", help="one class a row, 0/1 rows, or lists: .npy, .npz, .csv, .txt, …"
    )
    parser.add_argument(
        "--method", default="hbmp", metavar="NAME", help="`hbmp list methods` shows all (default: hbmp)"
    )
    parser.add_argument("--bits", type=int, default=32, metavar="N", help="length of the codes (default: 32)")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the method")
    parser.add_argument(
        "--holdout", metavar="N", help="rows held out, or a share; 0 for none (default: a tenth, at most 1000)"
    )
    parser.add_argument(
        "--cutoff", type=int, metavar="K", help="only the first K ranks count in the scores (default: all)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the split and the method (default: 0)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--data-dir", metavar="DIR", help="where data sets lie (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")


def run(options) -> None:
    """Hold rows out, fit on the others, score, save, write the card."""
    import json
    import shlex
    import sys
    import time

    import numpy as np

    from hbmp import evaluate, evaluation
    from hbmp._card import write_card
    from hbmp._inputs import read_data, rows_or_share
    from hbmp._settings import make_from_words

    data = read_data(options.data, options.labels, data_dir=options.data_dir)
    X, y = np.asanyarray(data.features), data.labels
    model = make_from_words(options.method, options.bits, options.set, seed=options.seed, device=options.device)
    if "verbose" in model.get_params():
        model.set_params(verbose=sys.stderr.isatty())
    drawn = {"queries": rows_or_share(options.holdout), "seed": options.seed}
    rows = evaluation.hold_out(X, y, **drawn).database if drawn["queries"] != 0 else np.arange(len(X))
    started = time.perf_counter()
    model.fit(X[rows], None if y is None else y[rows])
    seconds = time.perf_counter() - started
    told = {"name": data.name, "note": "The queries were held out; the model was fitted on the others."}
    found = evaluate(model, X, y, cutoff=options.cutoff, **drawn, **told) if len(rows) < len(X) else None
    model.save(options.output)
    command = shlex.join(["hbmp", *options.words])
    card = write_card(options.output, model, data, found, fit_seconds=seconds, n_train=len(rows), command=command)
    if options.json:
        done = {"model": options.output, "card": str(card), "rows": len(rows), "fit_seconds": round(seconds, 3)}
        print(json.dumps({**done, **(found.to_json() if found else {"scores": {}})}, ensure_ascii=False))
        return
    fitted = f"{type(model).__name__} of {model.n_bits} bits, fitted on {len(rows):,} rows in {seconds:.1f} s"
    print(f"{options.output}: {fitted}." + (f"\n\n{found.to_markdown()}" if found else ""))
