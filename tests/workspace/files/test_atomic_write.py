"""Files are replaced whole or not at all."""

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codeloop.workspace.files.atomic_write import (
    FileChanged,
    Replacement,
    replace_file,
    replace_files,
)
from codeloop.workspace.files.safe_open import FileRefused, read_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def left_over(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".codeloop-*")]


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_bytes(b"old")
    file.chmod(0o751)
    replace_file(Replacement(file, read_file(file), b"new"))
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert left_over(tmp_path) == []


def test_a_new_file_gets_the_usual_mode_and_its_folders(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "new"
    stamp = replace_file(Replacement(file, None, b"x"))
    plain = tmp_path / "plain"
    plain.write_text("")
    assert file.stat().st_mode == plain.stat().st_mode
    assert stamp is not None
    assert stamp.matches(read_file(file).stamp)


def test_a_file_that_changed_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one")
    before = read_file(file)
    info = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    with pytest.raises(FileChanged, match="changed after it was read"):
        replace_file(Replacement(file, before, b"mine"))
    assert file.read_bytes() == b"two"
    assert left_over(tmp_path) == []


def test_a_file_that_was_only_touched_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one")
    before = read_file(file)
    os.utime(file, ns=(1, 1))
    replace_file(Replacement(file, before, b"mine"))
    assert file.read_bytes() == b"mine"


def test_a_file_that_came_to_be_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"theirs")
    with pytest.raises(FileChanged, match="was created"):
        replace_file(Replacement(file, None, b"mine"))
    assert file.read_bytes() == b"theirs"


@pytest.mark.parametrize("kind", ["directory", "link", "gone"])
def test_a_file_that_became_something_else_is_left_alone(tmp_path: Path, kind: str) -> None:
    file, other = tmp_path / "f", tmp_path / "other"
    other.write_bytes(b"other")
    file.write_bytes(b"one")
    before = read_file(file)
    file.unlink()
    if kind == "directory":
        file.mkdir()
    elif kind == "link":
        file.symlink_to(other)
    with pytest.raises(FileRefused):
        replace_file(Replacement(file, before, b"mine"))
    assert other.read_bytes() == b"other"
    assert left_over(tmp_path) == []


def test_several_files_change_together_or_not_at_all(tmp_path: Path) -> None:
    files = [tmp_path / str(n) for n in range(5)]
    for file in files:
        file.write_bytes(b"old")
    changes = [Replacement(file, read_file(file), b"new") for file in files]
    files[3].write_bytes(b"theirs")
    with pytest.raises(FileChanged):
        replace_files([*changes, Replacement(tmp_path / "added", None, b"new")])
    assert [file.read_bytes() for file in files] == [b"old", b"old", b"old", b"theirs", b"old"]
    assert names(tmp_path) == ["0", "1", "2", "3", "4"]


def test_what_was_done_is_rolled_back_when_a_later_rename_fails(tmp_path: Path) -> None:
    keep, gone = tmp_path / "keep", tmp_path / "gone"
    keep.write_bytes(b"old")
    gone.write_bytes(b"old too")
    twice = tmp_path / "twice"
    changes = [
        Replacement(keep, read_file(keep), b"new"),
        Replacement(gone, read_file(gone), None),
        Replacement(twice, None, b"1"),
        Replacement(twice, None, b"2"),  # its name is taken by the one before
    ]
    with pytest.raises(FileChanged):
        replace_files(changes)
    assert (keep.read_bytes(), gone.read_bytes()) == (b"old", b"old too")
    assert names(tmp_path) == ["gone", "keep"]


def test_a_full_disk_leaves_the_old_bytes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old" * 1000)
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from codeloop.workspace.files.atomic_write import Replacement, replace_file\n"
        "from codeloop.workspace.files.safe_open import read_file\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "file = Path(sys.argv[1])\n"
        "try: replace_file(Replacement(file, read_file(file), b'n' * 50_000))\n"
        "except OSError as error: print(error.errno)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(errno.EFBIG)
    assert file.read_bytes() == b"old" * 1000
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011, 0.02])
def test_a_kill_leaves_every_file_old_or_new(tmp_path: Path, delay: float) -> None:
    size = 200_000
    for n in range(20):
        (tmp_path / str(n)).write_bytes(b"0" * size)
    code = (
        "import sys; from pathlib import Path\n"
        "from codeloop.workspace.files.atomic_write import Replacement, replace_files\n"
        "from codeloop.workspace.files.safe_open import read_file\n"
        "folder = Path(sys.argv[1]); files = [folder / str(n) for n in range(20)]\n"
        "print('go', flush=True)\n"
        "for turn in range(1, 10_000):\n"
        f"    new = str(turn % 10).encode() * {size}\n"
        "    replace_files([Replacement(f, read_file(f), new) for f in files])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + delay)
        process.send_signal(signal.SIGKILL)
    for n in range(20):
        data = (tmp_path / str(n)).read_bytes()
        assert len(data) == size
        assert data == data[:1] * size


def test_hard_links_stay_one_file(tmp_path: Path) -> None:
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes(b"old, and longer\n")
    path.chmod(0o640)
    os.link(path, other)
    replace_file(Replacement(path, read_file(path), b"new\n"))
    assert path.samefile(other)
    assert (other.read_bytes(), stat.S_IMODE(other.stat().st_mode)) == (b"new\n", 0o640)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.txt", "b.txt"]
    # A deletion takes the one name.
    replace_file(Replacement(path, read_file(path), None))
    assert other.read_bytes() == b"new\n"


def test_what_is_restored_is_not_written_through_a_link_that_a_command_made(tmp_path: Path) -> None:
    path, other = tmp_path / "a.txt", tmp_path / "other.txt"
    other.write_bytes(b"theirs")
    os.link(other, path)
    replace_file(Replacement(path, read_file(path), b"restored", keeps_links=False))
    assert (path.read_bytes(), other.read_bytes()) == (b"restored", b"theirs")
    assert left_over(tmp_path) == []


def test_the_cache_of_a_package_manager_is_not_written_through_a_hard_link(tmp_path: Path) -> None:
    path, cache = tmp_path / "node_modules" / "a.js", tmp_path / "store.js"
    path.parent.mkdir()
    cache.write_bytes(b"old\n")
    os.link(cache, path)
    replace_file(Replacement(path, read_file(path), b"new\n"))
    assert (path.read_bytes(), cache.read_bytes()) == (b"new\n", b"old\n")


def test_a_hard_link_has_its_old_bytes_when_another_file_can_not_be_replaced(
    tmp_path: Path,
) -> None:
    path, other, third = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.txt"
    path.write_bytes(b"old\n")
    third.write_bytes(b"third\n")
    os.link(path, other)
    replacements = [
        Replacement(path, read_file(path), b"new\n"),
        Replacement(third, read_file(third), b"new\n"),
    ]
    third.write_bytes(b"changed since\n")
    with pytest.raises(FileChanged):
        replace_files(replacements)
    assert (path.samefile(other), other.read_bytes()) == (True, b"old\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.txt", "b.txt", "c.txt"]
