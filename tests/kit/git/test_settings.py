"""Which settings can make git run a program or follow a path."""

import subprocess
from pathlib import Path

import pytest

from codeloop.kit.git.settings import read_settings


@pytest.mark.parametrize(
    ("text", "is_harmless"),
    [
        ('[branch "a"]\nremote = origin', True),
        ('[branch "a"]\nremote = ext::sh -c evil', False),
        ('[branch "a"]\npushRemote = ext::sh -c evil', False),
        ('[remote "a"]\nurl = https://example.com/x.git', True),
        ('[remote "a"]\nurl = ext::sh -c evil', False),
        ('[remote "a"]\nurl = my-helper::evil', False),
        ('[remote "a"]\nuploadpack = evil', False),
        ("[core]\nprotectHFS = true", True),
        # A tree's `.g\u200cit` would be written as `.git` on a Mac.
        (
            "[core]\nprotectHFS = false",
            False,
        ),
        ("[core]\nfsmonitor = evil", False),
        ('[hook "a"]\ncommand = evil', False),
    ],
)
def test_what_can_run_a_program_is_not_plain(text: str, is_harmless: bool) -> None:
    assert [setting.is_harmless for setting in read_settings(text)] == [is_harmless]


@pytest.mark.parametrize(
    "text", ["[core]\nhooksPath = a\0/b\n", '[url "/a\0b"]\ninsteadOf = x\n', "[a]\nb = c\0 # d\n"]
)
def test_names_and_values_end_at_a_nul_as_in_git(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    listed = subprocess.check_output(
        ["git", "config", "--file", "config", "--list"], cwd=tmp_path, text=True
    )
    assert [f"{setting.name}={setting.value}\n" for setting in read_settings(text)] == [listed]
