"""The list of trusted directories: exact, private, never trusted by accident."""

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.config.paths import Paths, find_paths
from codeloop.config.trust import store as module
from codeloop.config.trust.store import (
    distrust_directory,
    find_trust_record,
    read_trust,
    trust_directory,
)
from codeloop.schema.errors import CodeloopError


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"CODELOOP_HOME": str(tmp_path / "home")})


def is_trusted(paths: Paths, root: Path) -> bool:
    return find_trust_record(paths, root) is not None


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_nothing_is_trusted_at_first(tmp_path: Path, paths: Paths) -> None:
    assert not is_trusted(paths, tmp_path)
    assert read_trust(paths).warning is None


def test_trust_holds_for_exactly_that_directory(tmp_path: Path, paths: Paths) -> None:
    root = folder(tmp_path / "app")
    folder(root / "inner")
    trust_directory(paths, root)
    assert is_trusted(paths, root)
    assert not any(
        is_trusted(paths, other) for other in (tmp_path, root / "inner", tmp_path / "app-evil")
    )


def test_trust_is_for_the_directory_behind_a_link(tmp_path: Path, paths: Paths) -> None:
    root = folder(tmp_path / "app")
    other = folder(tmp_path / "other")
    (tmp_path / "link").symlink_to(root)
    trust_directory(paths, tmp_path / "link")
    assert is_trusted(paths, root)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(other)
    assert not is_trusted(paths, tmp_path / "link")


def test_trust_can_be_taken_back_even_when_the_directory_is_gone(
    tmp_path: Path, paths: Paths
) -> None:
    root = folder(tmp_path / "app")
    trust_directory(paths, root)
    root.rmdir()
    assert distrust_directory(paths, root)
    assert not distrust_directory(paths, root)
    assert not is_trusted(paths, root)


def test_only_the_owner_may_read_the_file(tmp_path: Path, paths: Paths) -> None:
    trust_directory(paths, tmp_path)
    assert stat.S_IMODE(paths.trust_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(paths.state.stat().st_mode) == 0o700
    assert [file.name for file in paths.state.iterdir()] == ["trust.json"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"directories": []}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"directories": {"/": 1}}',
    ],
)
def test_a_damaged_file_is_moved_aside_and_trusts_nothing(
    tmp_path: Path, paths: Paths, content: bytes
) -> None:
    paths.state.mkdir(parents=True)
    paths.trust_file.write_bytes(content)
    assert not is_trusted(paths, Path("/"))
    found = read_trust(paths)
    assert found.directories == {}
    assert found.warning is not None
    assert "no directory is trusted" in found.warning
    (aside,) = paths.state.iterdir()
    assert aside.read_bytes() == content
    assert aside.name.startswith("trust.json.broken-")
    trust_directory(paths, tmp_path)
    assert is_trusted(paths, tmp_path)


def test_a_list_that_can_not_be_read_is_not_replaced(tmp_path: Path, paths: Paths) -> None:
    trust_directory(paths, tmp_path)
    os.truncate(paths.trust_file, 1 << 30)
    for change in (trust_directory, distrust_directory):
        with pytest.raises(
            CodeloopError, match=r"can't be read \(File too large\).*Trust was not changed"
        ):
            change(paths, tmp_path)
    assert paths.trust_file.stat().st_size == 1 << 30


@pytest.mark.slow
def test_a_list_of_many_files_is_read_again(tmp_path: Path, paths: Paths) -> None:
    projects = [tmp_path / "one", tmp_path / "two"]
    for project in projects:
        folder = project / ".claude/agents"
        folder.mkdir(parents=True)
        for number in range(4_990):
            (folder / f"an-agent-with-quite-a-long-name-{number:04}.md").touch()
        trust_directory(paths, project)
    assert paths.trust_file.stat().st_size > 1024 * 1024
    assert all(is_trusted(paths, project) for project in projects)
    assert distrust_directory(paths, projects[0])


def test_no_more_is_written_than_is_read(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust_directory(paths, tmp_path)
    written = paths.trust_file.read_bytes()
    limit = type(module.TRUST_LIST_BYTES)("config.trust_list", len(written), "bytes", "")
    monkeypatch.setattr(module, "TRUST_LIST_BYTES", limit)
    (tmp_path / "other").mkdir()
    with pytest.raises(CodeloopError, match="Trust was not changed; remove a directory"):
        trust_directory(paths, tmp_path / "other")
    assert paths.trust_file.read_bytes() == written
    assert is_trusted(paths, tmp_path)


def test_a_pipe_in_its_place_does_not_hang(tmp_path: Path, paths: Paths) -> None:
    paths.state.mkdir(parents=True)
    os.mkfifo(paths.trust_file)
    assert "can't be read" in (read_trust(paths).warning or "")
    assert not is_trusted(paths, tmp_path)


def test_a_state_folder_that_can_not_be_made_is_a_clear_error(tmp_path: Path, paths: Paths) -> None:
    paths.state.parent.mkdir()
    paths.state.write_text("a file")
    with pytest.raises(
        CodeloopError, match=r"trust.json can't be written: .*Trust was not changed"
    ):
        trust_directory(paths, tmp_path)
    assert not is_trusted(paths, tmp_path)


def test_only_a_directory_can_be_trusted(tmp_path: Path, paths: Paths) -> None:
    with pytest.raises(CodeloopError, match="not a directory"):
        trust_directory(paths, tmp_path / "missing")


def test_a_lock_that_stays_is_waited_for_only_so_long(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "TRUST_LOCK", type(module.TRUST_LOCK)("config.trust_lock", 60, "ms", "")
    )
    paths.state.mkdir(parents=True)
    holder = os.open(paths.state, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with pytest.raises(CodeloopError, match="Another process holds the lock"):
        trust_directory(paths, tmp_path)
    os.close(holder)
    trust_directory(paths, tmp_path)
    assert is_trusted(paths, tmp_path)


@pytest.mark.slow
def test_processes_that_trust_at_once_lose_nothing(tmp_path: Path, paths: Paths) -> None:
    script = (
        "import sys; from pathlib import Path; from codeloop.config.paths import find_paths; "
        "from codeloop.config.trust import store; from codeloop.schema.wire import replace; "
        # On a busy machine the nine others' changes may take longer than the two
        # seconds of one person's.
        "store.TRUST_LOCK = replace(store.TRUST_LOCK, value=60_000); trust_directory = store.trust_directory; "
        "paths = find_paths({'CODELOOP_HOME': sys.argv[1]})\n"
        "for name in sys.argv[2:]: trust_directory(paths, Path(name))"
    )
    groups = [
        [str(folder(tmp_path / f"{worker}-{number}")) for number in range(10)]
        for worker in range(3)
    ]
    command = [sys.executable, "-c", script, str(tmp_path / "home")]
    workers = [subprocess.Popen([*command, *names]) for names in groups]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    assert set(read_trust(paths).directories) == {name for names in groups for name in names}
