"""What the result of an edit says of formatters."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from codeloop.tool.files.edit_finisher import EditFinisher, FileChange
from codeloop.workspace.files.safe_open import read_file
from codeloop.workspace.format.formatters import FormattedFile
from codeloop.workspace.sandbox.paths.denied_paths import DenyRules
from codeloop.workspace.workspace import ResolvedPath


@pytest.mark.parametrize(
    ("written", "formatted", "note"),
    [
        ("a\n\n\n", "a\n", "; gofmt: lines removed after 1"),
        ("a\nb\n", "a\n b\n", "; gofmt changed line 2"),
    ],
)
async def test_what_a_formatter_did_is_said(
    tmp_path: Path, written: str, formatted: str, note: str
) -> None:
    file = tmp_path / "a.go"
    file.write_text(formatted)

    async def format_files(
        files: Sequence[Path], _rules: DenyRules | None
    ) -> dict[Path, FormattedFile]:
        return {each: FormattedFile(read_file(each), changed_by=("gofmt",)) for each in files}

    change = FileChange(
        ResolvedPath(file, file, is_outside=False), None, written.encode(), "", written
    )
    landed = await EditFinisher(format_files).finish("ses", [change], lambda _: True)
    assert landed.notes == (note,)
    assert landed.changes[0].text_after == formatted


async def test_what_an_edit_breaks_is_said_without_a_language_server(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    change = FileChange(
        ResolvedPath(file, file, is_outside=False), None, b"a = [", "a = 1", "a = ["
    )
    landed = await EditFinisher().finish("ses", [change], lambda _: True)
    assert landed.text == "This broke the syntax of a.toml: line 1: Invalid value"


async def test_what_an_edit_broke_is_said_after_each_edit_until_it_is_repaired(
    tmp_path: Path,
) -> None:
    file, finisher = tmp_path / "a.py", EditFinisher()
    texts = ["x = 1\n", "x = (\n", "x = (\ny = 2\n", "x = ()\ny = 2\n", "x = ()\ny = 3\n"]
    notes: list[str] = []
    for before, after in pairwise(texts):
        change = FileChange(
            ResolvedPath(file, file, is_outside=False), None, after.encode(), before, after
        )
        notes.append(
            (await finisher.finish("ses", [change], lambda _: True)).text.partition(" (as")[0]
        )
    assert notes == [
        "This broke the syntax of a.py: line 1: '(' was never closed",
        "The syntax of a.py is still broken: line 1: '(' was never closed",
        "",
        "",
    ]
    change = FileChange(ResolvedPath(file, file, is_outside=False), None, b"", texts[1], texts[2])
    assert (await finisher.finish("ses", [change], lambda _: True)).text == "", (
        "others have broken it"
    )
