"""Files for the user and for CI: no link is followed on the way,
and a file is whole or not there.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from codeloop.kit.new_file import open_new_file, write_new_file


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_text("mine")
    return file


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_link_at_the_name_is_replaced_and_not_followed(project: Path, precious: Path) -> None:
    (project / "out").symlink_to(precious)
    write_new_file(Path("out"), b"new")
    assert (precious.read_text(), (project / "out").read_text()) == ("mine", "new")
    assert not (project / "out").is_symlink()
    assert stat.S_IMODE((project / "out").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["out.part", ".out.part", "out.tmp", ".out.tmp", "out~"])
def test_no_name_beside_it_can_be_guessed(project: Path, precious: Path, name: str) -> None:
    (project / name).symlink_to(precious)
    write_new_file(Path("out"), b"new")
    assert (precious.read_text(), (project / name).is_symlink()) == ("mine", True)


@pytest.mark.parametrize("base", [None, Path()])
def test_a_folder_on_the_way_is_no_link(project: Path, tmp_path: Path, base: Path | None) -> None:
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (project / "folder").symlink_to(tmp_path / "elsewhere")
    for path in (Path("folder/out"), Path("folder/deep/out")):
        with pytest.raises(OSError, match="is a link"):
            write_new_file(path, b"new", base=base)
    assert [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()] == []


def test_a_link_in_an_absolute_path_was_named_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path / "elsewhere")
    write_new_file(tmp_path / "folder" / "out", b"new")
    assert (tmp_path / "elsewhere" / "out").read_bytes() == b"new"


def test_below_a_base_missing_folders_are_made(project: Path) -> None:
    write_new_file(project / "a" / "b" / "out", b"new", base=project, mode=0o666)
    assert stat.S_IMODE((project / "a" / "b" / "out").stat().st_mode) == 0o644
    with pytest.raises(FileNotFoundError):
        write_new_file(Path("c/out"), b"new")


def test_what_fails_leaves_the_old_file_and_nothing_else(project: Path) -> None:
    (project / "out").write_text("old")
    with suppress(ValueError), open_new_file(Path("out")) as file:
        file.write(b"new")
        raise ValueError
    assert [(path.name, path.read_text()) for path in project.iterdir()] == [("out", "old")]


def test_a_name_that_is_taken_is_kept_where_nothing_may_be_replaced(
    project: Path, precious: Path
) -> None:
    (project / "link").symlink_to(precious)
    (project / "dangling").symlink_to(precious.with_name("none"))
    for name in ("link", "dangling"):
        with pytest.raises(FileExistsError):
            write_new_file(Path(name), b"new", replace=False)
    write_new_file(Path("new"), b"new", replace=False)
    assert sorted(path.name for path in project.iterdir()) == ["dangling", "link", "new"]
    assert precious.read_text() == "mine"


def test_a_device_is_written_to() -> None:
    reader, writer = os.pipe()
    write_new_file(Path(f"/dev/fd/{writer}"), b"new")
    os.close(writer)
    assert os.read(reader, 10) == b"new"
    os.close(reader)
