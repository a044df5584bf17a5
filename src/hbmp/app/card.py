"""The card of a model: its data, its scores on held-out rows, its settings, and the command that fitted it.

The program writes it to `card.md` in the model directory.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hbmp
from hbmp._core import machine
from hbmp._core.files import write_into_place
from hbmp._core.table import Table

if TYPE_CHECKING:
    from hbmp.datasets import Data
    from hbmp.hasher import Hasher

NAME = "card.md"


def write_card(
    folder: str | Path,
    model: Hasher,
    data: Data,
    evaluation: Any = None,
    *,
    fit_seconds: float,
    n_train: int,
    command: str = "",
) -> Path:
    """Write `card.md` into a model directory.

    `data` is the `hbmp.datasets.Data` of the fit, `evaluation` the scores on held-out rows, if any.
    """
    parts = [
        f"# {type(model).__name__}, {model.n_bits} bits, on {data.name}",
        f"Learned binary codes, saved by hbmp {hbmp.__version__} on {datetime.now(UTC):%Y-%m-%d}. Published as: "
        f"{type(model).citation or 'not published'}. `hbmp.load({str(folder)!r})` reads the model.",
        "## Data",
        _data(data, model, n_train),
        "## Scores",
        evaluation.to_markdown() if evaluation else "None: every row was used for fitting.",
        "## Settings",
        Table(("setting", "value"), tuple((name, _cell(value)) for name, value in _settings(model)), n_notes=1).text(),
        *_plan(model),
        "## Made with",
        _made(fit_seconds, command),
    ]
    return write_into_place(Path(folder) / NAME, "\n\n".join(parts) + "\n")


def _data(data: Data, model: Hasher, n_train: int) -> str:
    kind = "none" if data.labels is None else "one class per row" if data.labels.ndim == 1 else "multi-label"
    rows = (
        ("name", data.name),
        ("rows", f"{len(data):,}"),
        ("fitted on", f"{n_train:,}"),
        _content(data),
        *_encoder(model),
        ("labels", kind),
        ("SHA-256, 16 digits", data.checksum()),
    )
    return Table(("data", ""), rows, n_notes=1).text()


def _content(data: Data) -> tuple[str, str]:
    if data.features is not None:
        return "features", f"{data.features.shape[1]:,}"
    return ("texts", "one per row") if data.texts is not None else ("images", "decoded from files or pixels")


def _encoder(model: Hasher) -> list[tuple[str, str]]:
    """The encoder of the model, and its weights."""
    encoder = getattr(model, "input_encoder_", None)
    return [] if encoder is None else [("encoder", _cell(encoder)), ("weights", getattr(encoder, "digest_", "")[:16])]


def _settings(model: Hasher) -> list[tuple[str, object]]:
    return sorted(model.get_params(deep=False).items())


def _plan(model: Hasher) -> list[str]:
    """The decisions of a method for these data, where it has a plan."""
    if not hasattr(model, "plan_"):
        return []
    rows = tuple((name, _cell(value)) for name, value in model.plan_.as_dict().items())
    return ["## Plan", Table(("decision", "value"), rows, n_notes=1).text()]


def _made(fit_seconds: float, command: str) -> str:
    here = machine.describe("cpu")
    versions = ", ".join(f"{library} {version}" for library, version in machine.versions().items())
    lines = [f"Fitted in {fit_seconds:.1f} s on {here['cpu']}, {here['cores']} cores; {versions}."]
    if command:
        lines.append(f"    {command}")
    return "\n\n".join(lines)


def _cell(value: Any) -> str:
    return " ".join(repr(value).split()).replace("|", "\\|")
