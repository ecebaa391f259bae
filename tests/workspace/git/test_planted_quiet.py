"""Commands that leave git alone are not looked through;
what one plants after many of them is found all the same.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codeloop.workspace.git.planted.repositories import ProjectRepositories

SETTLED = 0.15  # seconds: a younger file could change again within one step of the clock
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it needs inotify")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "node_modules").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitmodules").write_text('[submodule "a"]\n\tpath = a\n')
    os.link(root / ".gitmodules", root / "node_modules/other-name")
    return root


@pytest.fixture
def planted(root: Path) -> Iterator[ProjectRepositories]:
    time.sleep(SETTLED)
    made = ProjectRepositories((root,), root.with_name("aside"), {"HOME": "/nonexistent"})
    made.cover({root / ".git": root.with_name("private")})
    for _ in range(3):
        made.begin_command()
        assert made.end_command() == ""
    made.record_state()
    assert made.is_unchanged
    yield made
    made.close()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def plant_nested(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root / "deep/sub")], check=True)
    append(root / "deep/sub/.git/config", "[core]\n\tfsmonitor = ./evil\n")


PLANTS: dict[str, Callable[[Path], None]] = {
    "a submodule's program": lambda root: append(root / ".gitmodules", "\tupdate = !evil\n"),
    "the same by another name": lambda root: append(
        root / "node_modules/other-name", "\tupdate = !evil\n"
    ),
    "a repository": plant_nested,
}


@pytest.mark.parametrize("name", PLANTS)
def test_what_is_planted_after_quiet_commands_is_set_aside(
    planted: ProjectRepositories, root: Path, name: str
) -> None:
    assert planted.try_begin_command()
    assert planted.try_end_command()
    assert planted.try_begin_command()
    PLANTS[name](root)
    assert not planted.try_end_command()
    assert "Set aside" in planted.end_command()


def test_what_the_user_makes_between_two_commands_is_the_users(
    planted: ProjectRepositories, root: Path
) -> None:
    plant_nested(root)
    assert not planted.try_record_state()
    planted.record_state()
    assert root / "deep/sub/.git/config" in planted.list_protected_paths()
    planted.begin_command()
    assert planted.end_command() == ""


def test_what_a_command_made_is_looked_at_after_each_one(
    planted: ProjectRepositories, root: Path
) -> None:
    planted.begin_command()
    subprocess.run(["git", "init", "-q", str(root / "sub")], check=True)
    planted.end_command()
    for _ in range(3):
        time.sleep(SETTLED)
        planted.begin_command()
        planted.end_command()
    planted.begin_command()
    append(root / "sub/.git/config", "[core]\n\tfsmonitor = ./evil\n")
    assert not planted.try_end_command()
    assert "Set aside" in planted.end_command()


def test_where_nothing_can_be_watched_each_command_is_looked_through(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no more can be watched")

    monkeypatch.setattr("codeloop.workspace.watch.inotify.InotifyWatch.__init__", refuse)
    time.sleep(SETTLED)
    planted = ProjectRepositories((root,), root.with_name("aside"), {"HOME": "/nonexistent"})
    for _ in range(3):
        planted.begin_command()
        planted.end_command()
    assert not planted.try_begin_command()
    planted.begin_command()
    (root / ".git/refs/heads/main").symlink_to("/elsewhere")
    assert not planted.try_end_command()
    assert "Set aside" in planted.end_command()
