"""Pipes, devices and files of gigabytes, at each name that the program reads in
a project: never waited for.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import HANGING, Desk, bash, call, serving, steps
from tests.support.answers import Answer

_NAMES = """
AGENTS.md CLAUDE.md .npmrc key.pem a.key .env secrets.json id_rsa .gitignore .ignore .rgignore .gitattributes
.gitmodules .editorconfig package.json pyproject.toml Cargo.toml go.mod setup.cfg tox.ini Makefile justfile
tsconfig.json package-lock.json .prettierrc biome.json ruff.toml .clang-format README.md .python-version
.pre-commit-config.yaml src/a.py .venv/pyvenv.cfg node_modules/x/package.json a.txt sub/AGENTS.md sub/.git
.mcp.json .codeloop/agent/a.md .codeloop/command/c.md .codeloop/skills/s/SKILL.md .opencode/tool/t.py
.opencode/plugin/p.js .opencode/package.json .opencode/themes/x.json .claude/settings.json .claude/agents/x.md
.claude/commands/x.md .claude/skills/u/SKILL.md
"""
NAMES = _NAMES.split()
_GIT_NAMES = """
HEAD index config packed-refs commondir shallow config.worktree info/exclude info/attributes refs/heads/main
objects/info/alternates
"""
GIT_NAMES = _GIT_NAMES.split()
KINDS = ("pipe", "device", "large")
CALLS = (
    bash("ls"),
    call("write", filePath="made.py", content="x = 1\n"),
    call("edit", filePath="file.py", oldString="x = 1", newString="x = 2"),
    call("read", filePath="AGENTS.md"),
    call("grep", pattern="x = "),
    call("glob", pattern="**/*.py"),
    call("list"),
    bash("ls"),
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.git("init", "-q", "-b", "main")
    (made.work / "file.py").write_text("x = 1\n")
    made.git("add", "file.py")
    made.git("commit", "-qm", "one")
    return made


def plant(path: Path, kind: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            with path.open("wb") as file:
                file.truncate(12 * 1024**3)  # a sparse one, which takes no room


def work(desk: Desk, *before: Answer) -> str:
    """Run a session that uses every tool for files, and return what it prints;
    fail when it doesn't come to its end.
    """
    with serving(steps(*before, *CALLS, Answer(text="Finished."))) as server:
        desk.use(server, permission={"*": "allow"})
        started = desk.start("run", "--auto", "--trust", "--title", "T", "work")
        try:
            shown, errors = started.communicate(timeout=HANGING)
        except subprocess.TimeoutExpired:
            started.kill()
            started.communicate()
            pytest.fail(f"it did not end within {HANGING:g} s")
    assert started.returncode == 0, errors
    assert "Traceback" not in errors
    assert "stopped after" not in shown + errors  # no search or command came to its deadline
    assert (desk.work / "file.py").read_text() == "x = 2\n"
    return shown + errors


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_ordinary_file_is_passed_over_at_every_name(desk: Desk, kind: str) -> None:
    for name in NAMES:
        plant(desk.work / name, kind)
    assert "Finished." in work(desk)


@pytest.mark.parametrize("name", GIT_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_ordinary_file_in_the_git_directory_is_not_waited_for(
    desk: Desk, name: str, kind: str
) -> None:
    plant(desk.work / ".git" / name, kind)
    assert "Finished." in work(desk)


def test_pipes_that_a_command_makes_do_not_hold_the_next_one_up(desk: Desk) -> None:
    line = "; ".join(
        f"mkdir -p $(dirname {name}); rm -f {name}; mkfifo {name}"
        for name in NAMES
        if "." in name[1:]
    )
    assert "Finished." in work(desk, bash(line))
