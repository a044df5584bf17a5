"""The verbs of the command line: one per file, found by its name.

A file defines `EXAMPLE`, a command that runs as it stands; `add_arguments(parser)`; and `run(options)`, a few lines
over the public names that return the exit status or nothing. The first line of its docstring is its help. Heavy
libraries are imported inside `run`, so that `--help` stays fast. A wrong value or name raises a ValueError or
LookupError with one sentence, which `hbmp.app.cli` prints.
"""
