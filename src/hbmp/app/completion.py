"""Shell completion of verbs, options, choices, file names and methods.

bash    eval "$(hbmp --completion bash)"          in ~/.bashrc
zsh     eval "$(hbmp --completion zsh)"           in ~/.zshrc, after compinit
fish    hbmp --completion fish | source           in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse
from typing import Any

from hbmp._core import catalog

_FILES = ("FILE", "DATA", "QUERIES", "DIR", "MODEL", "DB", "SOURCE")
_METHODS = ("method", "methods")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The completion script for one shell."""
    try:
        import shtab
    except ImportError:
        raise ImportError("Completion needs shtab: pip install shtab.") from None
    for action in _actions(parser):
        if action.dest in _METHODS and action.choices is None:
            action.choices = list(catalog.names("methods"))
        elif action.metavar in _FILES:
            action.complete = shtab.FILE
    return shtab.complete(parser, shell)


def _actions(parser: argparse.ArgumentParser) -> Any:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _actions(verb)
        else:
            yield action
