"""Completion scripts are made from the parser, and the shell that is here completes with them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from hbmp._core import catalog
from hbmp.app import cli


@pytest.mark.parametrize("shell", cli.SHELLS)
def test_every_verb_is_in_the_script(shell, capsys):
    assert cli.main(["--completion", shell]) == 0
    script = capsys.readouterr().out
    for verb in catalog.names("commands"):
        assert verb in script
    for name in catalog.names("methods"):
        assert name in script
    assert "--holdout" in script or "-l holdout" in script


def complete(script, *words):
    program = (
        f'source "{script}"; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; '
        f'"$(complete -p hbmp | grep -o -- "-F [^ ]*" | cut -c4-)"; echo "${{COMPREPLY[@]}}"'
    )
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_verbs_options_and_methods(tmp_path, capsys):
    assert cli.main(["--completion", "bash"]) == 0
    script = tmp_path / "hbmp.bash"
    script.write_text(capsys.readouterr().out)
    assert complete(script, "hbmp", "comp") == ["compare"]
    assert complete(script, "hbmp", "fit", "--hold") == ["--holdout"]
    assert complete(script, "hbmp", "compare", "--methods", "pca_s") == ["pca_sign"]
    assert complete(script, "hbmp", "export", "--to", "on") == ["onnx"]


def test_an_unknown_shell_is_told_in_a_sentence(capsys):
    assert cli.main(["--completion", "cmd"]) == 2
    told = capsys.readouterr()
    assert "invalid choice: 'cmd'" in told.err
    assert told.err.count("\n") == 1
