# Two commands do everything on a machine with Python >= 3.11 and make:
#   make demo    install the core into .venv, fit HBMP on real digits, print what it did
#   make test    install the development extras into .venv, run linter, type checker and tests
# Nothing is written outside this directory: caches and temporary files go to .cache/.

PYTHON ?= python3
BIN := .venv/bin
export PIP_NO_CACHE_DIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export XDG_CACHE_HOME := $(CURDIR)/.cache
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib

.PHONY: demo test check bench clean

demo: .venv/demo-installed
	$(BIN)/python -m hbmp.demo

test: check
	$(BIN)/python -m pytest -n 2 --basetemp=.cache/pytest -o cache_dir=.cache/pytest-cache

check: .venv/dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --cache-dir=.cache/mypy

bench: .venv/dev-installed
	$(BIN)/python benchmarks/inference.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo-installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt -e '.[plots]'
	touch $@

.venv/dev-installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@ .venv/demo-installed

clean:
	rm -rf .venv .cache demo build dist src/*.egg-info
