"""The index of file names: its order, and when it is made again."""

import os
from pathlib import Path

import pytest

from codeloop.schema.limits import Limit
from codeloop.workspace.search import file_index
from codeloop.workspace.search.file_index import FileIndex, index_names
from codeloop.workspace.search.ripgrep import Ripgrep

ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath)}


def test_shallow_names_come_first_and_hidden_ones_last() -> None:
    names = index_names(["src/b/C.py", "README.md", ".github/a.yml", "src/.env", "src/a.py"])
    assert [name.path for name in names] == [
        "README.md",
        "src/",
        "src/a.py",
        "src/b/",
        "src/b/C.py",
        ".github/",
        ".github/a.yml",
        "src/.env",
    ]
    assert [(name.lower, name.name, name.is_folder) for name in names[3:5]] == [
        ("src/b/", "b", True),
        ("src/b/c.py", "c.py", False),
    ]


async def test_the_names_are_the_same_objects_until_a_file_is_made_or_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FILES_AGE", "FILES_STALE"):
        monkeypatch.setattr(file_index, name, Limit("files.age", 0, "ms", "for this test"))
    index, ripgrep = FileIndex(), Ripgrep()
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.py").touch()
    first = await index.list_names(tmp_path, ripgrep, ENVIRONMENT)
    assert [name.path for name in first] == ["a/", "a/one.py"]
    assert await index.list_names(tmp_path, ripgrep, ENVIRONMENT) is first
    (tmp_path / "a/two.py").touch()
    second = await index.list_names(tmp_path, ripgrep, ENVIRONMENT)
    assert [name.path for name in second] == ["a/", "a/one.py", "a/two.py"]
    (tmp_path / "a/one.py").unlink()
    third = await index.list_names(tmp_path, ripgrep, ENVIRONMENT)
    assert [name.path for name in third] == ["a/", "a/two.py"]
