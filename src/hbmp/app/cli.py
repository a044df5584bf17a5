"""The command line `hbmp`: one file in `commands/` per verb; errors are printed as one sentence.

Results go to stdout and progress to stderr. Exit status: 0 success, 2 usage error, 1 internal error, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from hbmp import __version__
from hbmp._core import catalog

if TYPE_CHECKING:
    from collections.abc import Sequence

_OVERVIEW = "Learned binary codes for search."
_EXAMPLE = "hbmp list methods"
SHELLS = ("bash", "zsh", "fish")
_MISTAKES = (ValueError, LookupError, OSError, ImportError)


_SKIP = ", or pass on_error='skip' to skip such images"  # in the sentence of `hbmp.Images`


class _Parser(argparse.ArgumentParser):
    """Prints an error as one sentence instead of the whole usage."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Suggest the nearest option for an unknown one, which argparse does not."""
        options, unknown = self.parse_known_args(args, namespace)
        if not unknown:
            return options
        parser = getattr(options, "parser", self)
        known = [name for action in parser._actions for name in action.option_strings]
        word = unknown[0].partition("=")[0]
        close = difflib.get_close_matches(word, known, n=1, cutoff=0.75) if word.startswith("-") else []
        hint = f". Did you mean {close[0]}?" if close else "."
        self.exit(2, f"Unrecognized arguments: {' '.join(unknown)}{hint} See `{parser.prog} --help`.\n")

    def error(self, message: str) -> NoReturn:
        text = message[:1].upper() + message[1:]
        self.exit(2, f"{text.rstrip('.')}. See `{self.prog} --help`.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, by default that of this process, and return its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        options = _parser(words).parse_args(words)
        options.words = words
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except LookupError as error:
        return _print_error(error)
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = options.run(options)
        sys.stdout.flush()
        return int(status or 0)
    except KeyboardInterrupt:
        print(f"Interrupted. {_kept(options)}".rstrip(), file=sys.stderr)
        return 130
    except BrokenPipeError:
        with contextlib.suppress(OSError):  # the reader has gone; this avoids an error message at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if getattr(options, "debug", False):
            raise
        if isinstance(error, _MISTAKES) and type(error) not in (KeyError, IndexError):
            return _print_error(error, skips=hasattr(options, "on_error"))
        print(
            f"Unexpected {type(error).__name__}: {error}. Run it again with --debug for the traceback.", file=sys.stderr
        )
        return 1


def _kept(options: argparse.Namespace) -> str:
    """Description of what an interrupted verb has kept, from `kept(options)` of its module if it has one."""
    kept = getattr(sys.modules.get(options.run.__module__), "kept", None)
    return "" if kept is None else str(kept(options))


def _show_warning(
    message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: str | None = None
) -> None:
    """Print the sentence of a warning without its file and line."""
    print(" ".join(str(message).split()), file=sys.stderr)


def _print_error(error: BaseException, *, skips: bool = False) -> int:
    """Print the sentence; `skips` says whether the command has the option --on-error."""
    text = str(error).replace(_SKIP, _SKIP.replace("on_error='skip'", "--on-error skip") if skips else "")
    if isinstance(error, OSError) and error.strerror and text.startswith("[Errno"):
        text = f"{error.filename}: {error.strerror}." if error.filename is not None else f"{error.strerror}."
    print(" ".join(text.split()) or type(error).__name__, file=sys.stderr)
    return 2


def _parser(words: list[str]) -> argparse.ArgumentParser:
    """The parser of the named verb, or of all verbs for the overview."""
    common = _Parser(add_help=False)
    common.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    parser = _Parser(
        prog="hbmp", description=_OVERVIEW, epilog=f"Example: {_EXAMPLE}", parents=[common], formatter_class=_Help
    )
    parser.add_argument("--version", action="version", version=f"hbmp {__version__}")
    parser.add_argument(
        "--completion", action=_Completion, choices=SHELLS, help="print the completion script for a shell"
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    named = next((word for word in words if not word.startswith("-")), None) if "--completion" not in words else None
    if named is not None and named not in catalog.names("commands"):
        raise LookupError(_unknown(named))
    for name in catalog.names("commands") if named is None else (named,):
        _add_verb(verbs, name, common)
    return parser


def _add_verb(verbs: Any, name: str, common: argparse.ArgumentParser) -> None:
    command = catalog.load_module("commands", name)
    about = (command.__doc__ or "").strip()
    verb = verbs.add_parser(
        name,
        help=about.partition("\n")[0],
        description=about,
        epilog=f"Example:\n  {command.EXAMPLE}",
        parents=[common],
        formatter_class=_Help,
    )
    command.add_arguments(verb)
    verb.set_defaults(run=command.run, parser=verb)


class _Completion(argparse.Action):
    """Prints a script that completes verbs, options, methods and files."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        from hbmp.app.completion import script

        print(script(parser, str(values)))
        parser.exit()


class _Help(argparse.RawDescriptionHelpFormatter):
    """Keeps line breaks, with more room for the names of options."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=32)


def _unknown(verb: str) -> str:
    known = catalog.names("commands")
    close = difflib.get_close_matches(verb, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"No verb called {verb!r}.{hint} There are {', '.join(known)}."


if __name__ == "__main__":
    sys.exit(main())
