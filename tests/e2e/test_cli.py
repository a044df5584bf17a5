"""The command line as a user meets it: help, lists, mistakes in one sentence, exit statuses."""

from __future__ import annotations

import importlib
import json
import shlex
import subprocess
import sys
import time

import pytest

import hbmp
from hbmp import datasets
from hbmp._core import catalog
from hbmp.app import cli

VERBS = catalog.names("commands")


def run(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "hbmp", *words], capture_output=True, text=True, check=False, **options
    )


@pytest.mark.parametrize("words", [["--help"], *([verb, "--help"] for verb in VERBS)])
def test_help_imports_nothing_heavy(words):
    program = (
        "import sys; from hbmp import cli; status = cli.main(sys.argv[1:]);"
        "heavy = {'torch', 'faiss', 'sklearn', 'scipy', 'numpy', 'matplotlib', 'tqdm'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else status)"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: hbmp")


@pytest.mark.parametrize("verb", VERBS)
def test_help_ends_in_an_example_that_parses(verb, capsys):
    assert cli.main([verb, "--help"]) == 0
    example = capsys.readouterr().out.rstrip().splitlines()[-1].strip()
    assert example == importlib.import_module(f"hbmp.app.commands.{verb}").EXAMPLE
    program, *words = shlex.split(example)
    assert program == "hbmp"
    options = cli._parser(words).parse_args(words)
    assert callable(options.run)


def test_the_overview_names_every_verb_and_ends_in_an_example(capsys):
    assert cli.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(f"\n    {verb}" in told for verb in VERBS)
    assert told.rstrip().splitlines()[-1] == "Example: hbmp list methods"


def test_list_methods_runs_as_a_program():
    done = run("list", "methods")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(catalog.names("methods"))


def test_lists_as_json_are_what_the_folders_hold(capsys):
    assert cli.main(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {entry["name"] for entry in found if entry["kind"] == "datasets"} == set(datasets.names())
    assert {entry["name"] for entry in found if entry["kind"] == "methods"} == set(catalog.names("methods"))
    assert all(entry["about"] for entry in found)
    assert cli.main(["list", "datasets"]) == 0
    assert "fashion-mnist  " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fech"], "No verb called 'fech'. Did you mean 'fetch'?"),
        ([], "required: VERB. See `hbmp --help`."),
        (["fetch"], "required: NAME. See `hbmp fetch --help`."),
        (["fetch", "cifra10"], "No data set called 'cifra10'. Did you mean 'cifar10'?"),
        (["fetch", "digits"], "Digits (scikit-learn) cannot be downloaded. It comes with scikit-learn"),
        (["list", "nothing"], "invalid choice: 'nothing'"),
        (["fetch", "mnist", "--wrong"], "Unrecognized arguments: --wrong. See `hbmp fetch --help`."),
        (["fetch", "mnist", "--froce"], "--froce. Did you mean --force? See `hbmp fetch --help`."),
        (["reproduce", "table99"], "called 'table99'."),
    ],
)
def test_mistakes_are_one_sentence_and_exit_two(words, sentence, capsys):
    assert cli.main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert sentence in told.err
    assert told.err.count("\n") == 1
    assert "Traceback" not in told.err


@pytest.mark.parametrize("words", [["--debug", "fetch", "nothing-such"], ["fetch", "nothing-such", "--debug"]])
def test_debug_shows_where_it_came_from(words):
    done = run(*words)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "LookupError: No data set called 'nothing-such'" in done.stderr


def test_defects_of_ours_are_told_apart_from_mistakes(monkeypatch, capsys):
    from hbmp.app.commands import list as listing

    def broken(options):
        return {}["nothing"]

    monkeypatch.setattr(listing, "run", broken)
    assert cli.main(["list"]) == 1
    assert "Unexpected KeyError: 'nothing'. Run it again with --debug" in capsys.readouterr().err


INTERRUPTED = {
    "list": "Interrupted.",
    "fit x.npy -o m": "Interrupted. No model was saved. The same command starts from the beginning.",
    "fit x.npy -o old": "Interrupted. No model was saved, and the earlier one is unchanged. The same command starts",
    'fit p -o m --set function=["network",{"checkpoint":"ck"}]': "continue from the checkpoint in ck.",
    "encode m x.npy -o codes.npy": "Interrupted. codes.npy is as it was, or whole. Parquet parts",
    "encode m x.npy -o codes": "Interrupted. Run the same command again to continue.",
    "features t.csv -o new.npy": "Interrupted. new.npy is as it was, or whole.",
    "features t.csv -o x.npy": "Interrupted. Run the same command again to continue from the vectors in x.npy.part.",
    "index m x.npy -o db": "Interrupted. db is as it was, or whole.",
    "index m p -o photos": "Interrupted. Run the same command again to continue.",
    "add db x.npy": "Interrupted. Either all of the items are in db, or none.",
    "remove db 3": "Interrupted. Either all of these items are removed from db, or none.",
    "fetch mnist": "Interrupted. Run the same command again to continue.",
    "reproduce fig1": "Interrupted. Finished cells are kept; run the same command again to continue.",
}


@pytest.mark.parametrize("line", INTERRUPTED)
def test_an_interrupt_says_what_was_kept(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ("old", "ck", "photos.parts"):
        (tmp_path / folder).mkdir()
    for file in ("old/model.json", "ck/training.safetensors", "x.npy.part", "x.npy.part.json"):
        (tmp_path / file).touch()
    words = shlex.split(line, posix="[" not in line)
    command = importlib.import_module(f"hbmp.app.commands.{words[0]}")

    def interrupted(options):
        options.started = time.time_ns() + 10**9
        raise KeyboardInterrupt

    interrupted.__module__ = command.__name__
    monkeypatch.setattr(command, "run", interrupted)
    assert cli.main(words) == 130
    assert INTERRUPTED[line] in capsys.readouterr().err


def test_an_interrupted_fit_tells_a_saved_model_from_a_lost_one(tmp_path, monkeypatch, capsys):
    """The interrupt comes while the card is written, then while the model learns."""
    from hbmp.app import card
    from hbmp.methods.lsh import LSH

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    def full_disk(*_):
        raise OSError(28, "No space left on device", "m/card.md")

    monkeypatch.chdir(tmp_path)
    words = ["fit", "digits", "--method", "lsh", "--bits", "8", "--holdout", "0", "-o", "m"]
    with monkeypatch.context() as patch:
        patch.setattr(card, "write_card", interrupted)
        assert cli.main(words) == 130
    assert capsys.readouterr().err == "Interrupted. The model is saved in m; its card is not finished.\n"
    with monkeypatch.context() as patch:
        patch.setattr(card, "write_into_place", full_disk)
        assert cli.main(words) == 2
    told = capsys.readouterr().err
    assert told == "The model is saved in m, but its card cannot be written: No space left on device.\n"
    before = hbmp.load("m").get_params()
    monkeypatch.setattr(LSH, "_fit", interrupted)
    assert cli.main(words) == 130
    assert "No model was saved, and the earlier one is unchanged." in capsys.readouterr().err
    assert hbmp.load("m").get_params() == before


def test_a_reader_that_leaves_early_is_no_error():
    """As in `hbmp list | head -1`."""
    program = subprocess.Popen(
        [sys.executable, "-c", "import sys, time; from hbmp import cli; time.sleep(0.5); sys.exit(cli.main(['list']))"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        program.stdout.close()
        assert program.stderr.read() == ""
    assert program.returncode == 0


def test_the_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"hbmp {hbmp.__version__}\n"


def test_reproduce_hands_its_options_to_the_recipe(monkeypatch):
    recipes = pytest.importorskip("hbmp.experiments.recipes")
    asked = {}
    monkeypatch.setattr(recipes, "reproduce", lambda name, **options: asked.update(name=name, **options))
    name = recipes.names()[0]
    words = ["reproduce", name, "--bits", "12", "32", "--seeds", "0", "--data-dir", "d", "--jobs", "2"]
    assert cli.main(words) == 0
    assert asked == {
        "name": name,
        "bits": [12, 32],
        "seeds": [0],
        "data_dir": "d",
        "jobs": 2,
        "results": "results",
        "device": "auto",
        "refresh": False,
    }


def test_reproduce_lists_the_cells_of_a_grid_and_keeps_options_of_grids_from_recipes(capsys):
    from hbmp.app.commands import reproduce
    from hbmp.experiments import grids

    assert set(reproduce.GRIDS) == {*grids.GRIDS, "all"}
    assert cli.main(["reproduce", "cifar-1", "--bits", "12", "--seeds", "0", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(grids.cells_of("cifar-1", bits=[12], seeds=[0]))
    assert all("12 bits, seed 0" in line for line in lines)
    assert cli.main(["reproduce", "table1", "--minutes", "5"]) == 2
    assert capsys.readouterr().err == "--minutes is an option of grids, and 'table1' is a recipe.\n"
    assert cli.main(["reproduce", "tabel1"]) == 2
    assert "Did you mean 'table1'?" in capsys.readouterr().err


def test_report_fills_the_marked_tables_of_a_file(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- results:table1 -->\n<!-- /results -->\n")
    words = ["report", "--results", str(tmp_path), "--fill", str(page)]
    assert cli.main(words) == 0
    assert capsys.readouterr().out == f"Filled {page}.\n"
    assert "| ITQ | — (0.237)" in page.read_text("utf-8")
    assert cli.main(words) == 0
    assert capsys.readouterr().out == "Every table is up to date.\n"


def test_a_verb_is_a_file_and_nothing_else(tmp_path, monkeypatch, capsys):
    """The promise of commands/: a new file there is a new verb."""
    (tmp_path / "greet.py").write_text(
        '"""Greet somebody."""\n'
        'EXAMPLE = "hbmp greet Ada"\n'
        "def add_arguments(parser):\n    parser.add_argument('who')\n"
        "def run(options):\n    print(f'Hello {options.who}')\n"
    )
    import hbmp.app.commands

    monkeypatch.setattr(hbmp.app.commands, "__path__", [*hbmp.app.commands.__path__, str(tmp_path)])
    real = catalog.names
    monkeypatch.setattr(
        catalog, "names", lambda folder: (*real(folder), "greet") if folder == "commands" else real(folder)
    )
    assert cli.main(["greet", "Ada"]) == 0
    assert capsys.readouterr().out == "Hello Ada\n"
    monkeypatch.delitem(sys.modules, "hbmp.app.commands.greet")
