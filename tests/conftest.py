"""What all tests share: nothing fails because the machine was busy."""

import pytest
from hypothesis import settings

from hbmp._core import progress

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """Work of more than ten seconds tells its progress on stderr, which many tests expect to be empty."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", float("inf"))
