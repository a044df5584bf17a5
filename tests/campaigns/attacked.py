"""The process that forks the children of all campaigns: what they need is imported once."""

from __future__ import annotations

from typing import Any

import damage
import forged
import forking
import kills
import together

CAMPAIGNS = {"damage": damage, "forged": forged, "kills": kills, "together": together}


def answer(question: dict[str, Any]) -> list[tuple[str, str]]:
    """Make the attacks of one question."""
    return CAMPAIGNS[question["campaign"]].answer(question)


if __name__ == "__main__":
    forking.serve(answer, kills.warm_up)
