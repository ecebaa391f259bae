"""The whole program, in repositories that a model or a stranger prepared: codeloop's
own git starts nothing of them.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, call, serving, steps
from tests.support.answers import Answer
from tests.workspace.snapshot.trees_on_disk import git, repository, write

pytestmark = pytest.mark.slow

# What a command in the background writes: a second git directory with a filter,
# and the pointer to it.
PLANT = """\
import os, pathlib, shutil, sys, time
git, evil = pathlib.Path(".git"), pathlib.Path("evil")
for name in ("objects", "refs"):
    shutil.copytree(git / name, evil / name)
(evil / "info").mkdir()
(evil / "info/attributes").write_text("*.py filter=a=b\\n")
script = pathlib.Path("run.sh").absolute()
lines = "".join(f"\\t{verb} = {script}\\n" for verb in ("clean", "smudge"))
(evil / "config").write_text(f'[core]\\n\\trepositoryformatversion = 0\\n[filter "a=b"]\\n{lines}')
try:
    (git / "commondir").write_text("../evil\\n")
except OSError:
    pass
pathlib.Path("planted").touch()
time.sleep(float(sys.argv[1]))
"""


def prepare(desk: Desk) -> Path:
    """Make the project; return the file that the script of the attack makes."""
    sprung = desk.folder / "sprung"
    files = {
        "calc.py": "print(1)\n",
        "plant.py": PLANT,
        "run.sh": f"#!/bin/sh\ntouch {sprung}\ncat\n",
    }
    root = repository(desk.work, {**files, ".gitattributes": "*.py filter=a=b\n"})
    (root / "run.sh").chmod(0o755)
    return sprung


def test_a_command_in_the_background_can_not_have_the_next_call_start_a_program(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    sprung = prepare(desk)
    answers = (
        call("bash", call_id="c1", command="python3 plant.py 60", run_in_background=True),
        bash("for i in $(seq 100); do [ -e planted ] && break; sleep 0.1; done; ls planted", "c2"),
        call("bash", call_id="c3", command="cat calc.py", unchanged=True),
        Answer(text="Done."),
    )
    with serving(steps(*answers)) as server:
        desk.use(server)
        done = desk.run("run", "--auto", "--format", "json", "work")
    assert "print(1)" in done.stdout, done.stdout
    assert not sprung.exists()


def by_common_folder(root: Path) -> None:
    subprocess.run(["python3", "plant.py", "0"], cwd=root, check=True)


def by_plain_filter(root: Path) -> None:
    for verb in ("clean", "smudge"):
        git(root, "config", f"filter.a=b.{verb}", str(root / "run.sh"))


def by_branch(root: Path) -> None:
    write(
        root,
        {"more": f'[filter "a=b"]\n\tsmudge = {root / "run.sh"}\n\tclean = {root / "run.sh"}\n'},
    )
    git(root, "config", "includeIf.onbranch:**.path", str(root / "more"))


@pytest.mark.parametrize("plant", [by_common_folder, by_plain_filter, by_branch])
def test_a_prepared_repository_starts_nothing(
    tmp_path: Path, plant: Callable[[Path], None]
) -> None:
    desk = Desk(tmp_path)
    sprung = prepare(desk)
    plant(desk.work)
    answers = (
        call("bash", call_id="c1", command="cat calc.py", unchanged=True),
        Answer(text="Done."),
    )
    with serving(steps(*answers)) as server:
        desk.use(server)
        words = (
            ("run", "--auto", "--format", "json", "work"),
            ("run", "--auto", "--worktree", "one", "work"),
            ("worktree", "create", "two"),
            ("worktree", "diff", "one"),
            ("worktree", "merge", "one", "--message", "m"),
            ("worktree", "rebase", "two"),
            ("worktree", "list"),
            ("session", "move", "--output", str(tmp_path / "session.zip")),
            ("session", "move", "--import", str(tmp_path / "session.zip")),
            ("worktree", "remove", "two"),
            ("worktree", "remove", "--force", "one"),
        )
        printed = [(each, desk.run(*each)) for each in words]
    assert [(each, done.stderr) for each, done in printed if done.returncode] == []
    assert not sprung.exists()
    assert (desk.work / "calc.py").read_text() == "print(1)\n"
    assert os.path.lexists(desk.work / ".git/index")
