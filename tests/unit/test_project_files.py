"""The files that describe the project agree with each other and can be read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

import hbmp

ROOT = Path(__file__).parents[2]
YAML = [
    "CITATION.cff",
    ".pre-commit-config.yaml",
    *(str(path.relative_to(ROOT)) for path in ROOT.glob(".github/**/*.yml")),
]


@pytest.mark.parametrize("name", YAML)
def test_yaml_files_parse(name):
    assert isinstance(yaml.safe_load((ROOT / name).read_text(encoding="utf-8")), dict)


def test_the_version_is_written_once_and_cited_right():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "hbmp.__version__"}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == hbmp.__version__
