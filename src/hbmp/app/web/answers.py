"""Answers as JSON that every client can read: what a payload holds beyond finite numbers becomes null."""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse

from hbmp._core.finite import finite


class Answer(JSONResponse):
    """A JSON response without NaN and infinity."""

    def render(self, content: Any) -> bytes:
        """The body; the content is searched for such numbers only where there is one."""
        try:
            return super().render(content)
        except ValueError:
            return super().render(finite(content))
