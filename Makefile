# Two commands do everything on a machine with Python >= 3.11 and make:
#   make demo    install into .venv, compare methods on real texts, leave a report and a database in demo/
#   make test    install the development extras into .venv, run linter, type checker and tests
# and one more, for who wants to read: make docs builds the pages of docs/ into site/.
# Nothing stays outside this directory: caches and temporary files go to .cache/. Only the tests that start a database
# or workers use a folder of the system's temporary directory while they run, because unix sockets take no long paths.

PYTHON ?= python3
BIN := .venv/bin
export PIP_NO_CACHE_DIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export XDG_CACHE_HOME := $(CURDIR)/.cache
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
export RUFF_CACHE_DIR := $(CURDIR)/.cache/ruff
export HYPOTHESIS_STORAGE_DIRECTORY := $(CURDIR)/.cache/hypothesis
export TORCHINDUCTOR_CACHE_DIR := $(CURDIR)/.cache/torchinductor
# The tests load ONNX Runtime, which otherwise reports its use to its makers.
export ORT_DISABLE_TELEMETRY := 1
# Packages are unpacked here rather than in /tmp, which is small on some machines.
INSTALL := mkdir -p .cache/tmp && TMPDIR='$(CURDIR)/.cache/tmp' $(BIN)/pip install --quiet -c constraints.txt

.PHONY: demo test check bench docs clean

demo: .venv/demo-installed
	$(BIN)/hbmp demo --output demo

test: check
	mkdir -p .cache
	$(BIN)/python -m pytest -n 2 --basetemp=.cache/pytest -o cache_dir=.cache/pytest-cache

check: .venv/dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --cache-dir=.cache/mypy

bench: .venv/dev-installed
	$(BIN)/python benchmarks/inference.py

# Any warning, a link that leads nowhere among them, is an error.
docs: .venv/dev-installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo-installed: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[learn,plots,web,text]'
	touch $@

.venv/dev-installed: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[dev]'
	touch $@ .venv/demo-installed

clean:
	rm -rf .venv .cache build dist site src/*.egg-info
