"""What a killed write leaves beside files is removed by the next run, and nothing else is."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codeloop.kit.processes import read_pid_scope, read_start_time
from codeloop.schema.limits import WRITE_RECORD_AGE
from codeloop.workspace.files.atomic_write import (
    FileChanged,
    Replacement,
    replace_file,
    replace_files,
)
from codeloop.workspace.files.safe_open import read_file
from codeloop.workspace.files.temp_files import record_temporary_files, remove_leftovers

KILLED = """
import sys
from pathlib import Path
from codeloop.workspace.files.atomic_write import Replacement, replace_files
from codeloop.workspace.files.safe_open import read_file
work, notes = map(Path, sys.argv[1:])
files = sorted(work.iterdir())
changes = [Replacement(f, read_file(f), b"new") for f in files]
replace_files([*changes, Replacement(work / "sub" / "x", None, b"new")], notes)
"""
DEAD = "4194304-123-0123456789abcdef"
"""The note of a process whose id none can have."""


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".codeloop-*"))


def note(notes: Path, *paths: Path, place: str | None = None, name: str = DEAD) -> Path:
    notes.mkdir(exist_ok=True)
    file = notes / name
    file.write_bytes(
        b"".join(
            os.fsencode(each) + b"\0"
            for each in (read_pid_scope() if place is None else place, *paths)
        )
    )
    return file


@pytest.mark.parametrize(
    "point", ["files.write.before:1", "files.write.before:3", "files.write.after:2"]
)
def test_what_a_real_kill_left_is_removed_and_every_file_is_old_or_new(
    tmp_path: Path, point: str
) -> None:
    work, notes = tmp_path / "work", tmp_path / "notes"
    work.mkdir()
    for name in ("a", "b", "c"):
        (work / name).write_bytes(b"old")
    argv = [sys.executable, "-c", KILLED, str(work), str(notes)]
    done = subprocess.run(argv, env={**os.environ, "CODELOOP_FAULT": f"{point}:kill"}, check=False)
    assert done.returncode == -signal.SIGKILL
    left = left_over(work)
    assert left
    (work / ".codeloop-0123456789abcdef").write_text("not ours: nobody noted it")
    assert sorted(path.name for path in remove_leftovers(notes)) == left
    assert left_over(work) == [".codeloop-0123456789abcdef"]
    assert list(notes.iterdir()) == []
    assert {file.read_bytes() for file in work.iterdir() if len(file.name) == 1} <= {b"old", b"new"}


def test_a_write_that_ends_leaves_no_note_whether_it_worked_or_not(tmp_path: Path) -> None:
    file, notes = tmp_path / "f", tmp_path / "deep" / "notes"
    replace_file(Replacement(file, None, b"one"), notes)
    before = read_file(file)
    file.write_bytes(b"two")
    with pytest.raises(FileChanged):
        replace_files([Replacement(file, before, b"three")], notes)
    assert list(notes.iterdir()) == []
    assert notes.stat().st_mode & 0o077 == 0


def test_the_names_of_a_living_process_are_left(tmp_path: Path) -> None:
    temporary = tmp_path / ".codeloop-0123456789abcdef"
    with record_temporary_files(tmp_path / "notes", [temporary]):
        temporary.write_text("under way")
        assert remove_leftovers(tmp_path / "notes") == []
        assert temporary.exists()


def test_a_process_id_that_is_used_again_does_not_keep_them(tmp_path: Path) -> None:
    temporary = tmp_path / ".codeloop-0123456789abcdef"
    temporary.write_text("left")
    note(tmp_path / "notes", temporary, name=f"{os.getpid()}-1-0123456789abcdef")
    assert read_start_time(os.getpid()) != "1"
    assert remove_leftovers(tmp_path / "notes") == [temporary]


def test_what_another_machine_noted_is_left_until_it_is_old(tmp_path: Path) -> None:
    temporary = tmp_path / ".codeloop-0123456789abcdef"
    temporary.write_text("left")
    file = note(tmp_path / "notes", temporary, place="elsewhere#1.2")
    assert remove_leftovers(tmp_path / "notes") == []
    past = time.time() - WRITE_RECORD_AGE.seconds - 60
    os.utime(file, (past, past))
    assert remove_leftovers(tmp_path / "notes") == [temporary]
    assert not file.exists()


def test_only_names_of_our_own_kind_are_removed_and_no_link_is_followed(tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    work.mkdir()
    name = ".codeloop-0123456789abcdef"
    kept = [work / "main.py", work / f"{name}0", outside / name, work / "folder" / name]
    for path in kept[:3]:
        path.write_text("theirs")
    kept[3].mkdir(parents=True)
    (work / "link").symlink_to(outside)
    paths = (
        *kept[:2],
        work / "link" / name,
        kept[3],
        Path("relative") / name,
        work / "gone" / name,
    )
    note(tmp_path / "notes", *paths)
    assert remove_leftovers(tmp_path / "notes") == []
    assert all(path.exists() for path in kept)
    assert list((tmp_path / "notes").iterdir()) == []


def test_a_link_that_was_being_put_back_is_removed_and_not_what_it_names(tmp_path: Path) -> None:
    theirs, temporary = tmp_path / "theirs", tmp_path / ".codeloop-0123456789abcdef"
    theirs.write_text("x")
    temporary.symlink_to(theirs)
    note(tmp_path / "notes", temporary)
    assert remove_leftovers(tmp_path / "notes") == [temporary]
    assert theirs.read_text() == "x"


def test_a_note_that_was_cut_short_names_fewer(tmp_path: Path) -> None:
    temporary = tmp_path / ".codeloop-0123456789abcdef"
    temporary.write_text("left")
    file = note(tmp_path / "notes", temporary, temporary)
    file.write_bytes(file.read_bytes()[:-1])
    assert remove_leftovers(tmp_path / "notes") == [temporary]
    assert remove_leftovers(tmp_path / "none") == []


def test_a_write_goes_on_where_nothing_can_be_noted(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("a file")
    replace_file(Replacement(tmp_path / "f", None, b"x"), tmp_path / "notes")
    assert (tmp_path / "f").read_bytes() == b"x"
