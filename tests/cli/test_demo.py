"""`codeloop demo`: it ends with success and leaves nothing, whatever tools the user has;
its last lines work.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import KEY, Desk, serving
from tests.support.answers import Answer

PROGRAM = Path(sys.executable).parent / "codeloop"


def test_the_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    # The caches that a sandbox lays its overlays over.
    for name in (".cache/uv", ".cache/pip", ".npm", ".cargo/registry"):
        (tmp_path / name).mkdir(parents=True)
    (temporary := tmp_path / "temporary").mkdir()
    ended = desk.run("demo", TMPDIR=str(temporary))
    assert ended.returncode == 0, ended
    assert "all 5 tests pass" in ended.stderr + ended.stdout
    assert list(temporary.iterdir()) == []


def play(folder: Path, *command: str | Path, path: str = os.defpath) -> list[str]:
    """Run the demo in a home of its own; return the lines that it printed for people."""
    environment = {"HOME": str(folder), "PATH": path, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [*command, "demo"], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()


def last_commands(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines[-4:] if line.startswith("  ")]


def test_it_starts_no_language_server(tmp_path: Path) -> None:
    # The development environment has some, and is on the demo's PATH.
    assert (PROGRAM.parent / "basedpyright-langserver").exists()
    ended = Desk(tmp_path).run("demo", "--keep", TMPDIR=str(tmp_path))
    assert ended.returncode == 0, ended
    (data,) = tmp_path.glob("codeloop-demo-*/home/data/project/global")
    assert (data / "codeloop.db").exists()
    assert not (data / "lsp").exists()


@pytest.mark.slow
def test_its_last_lines_name_the_program_as_it_can_be_started(tmp_path: Path) -> None:
    assert last_commands(play(tmp_path, PROGRAM))[0] == f"{PROGRAM} auth login anthropic"
    on_path = f"{PROGRAM.parent}{os.pathsep}{os.defpath}"
    assert (
        last_commands(play(tmp_path, PROGRAM, path=on_path))[0] == "codeloop auth login anthropic"
    )
    module = play(tmp_path, sys.executable, "-m", "codeloop")
    assert last_commands(module)[0] == f"{sys.executable} -m codeloop auth login anthropic"
    # As pipx and uv install it: a link in a folder of the PATH.
    links = tmp_path / "links"
    links.mkdir()
    (links / "codeloop").symlink_to(PROGRAM)
    linked = play(tmp_path, links / "codeloop", path=f"{links}{os.pathsep}{os.defpath}")
    assert last_commands(linked)[0] == "codeloop auth login anthropic"


@pytest.mark.slow
def test_its_last_lines_are_commands_that_work_where_one_stands(tmp_path: Path) -> None:
    sign_in, work = last_commands(play(tmp_path, PROGRAM))
    assert re.search(r' run "find out why', work)
    with serving([Answer(text="All is well.")]) as server:
        provider = {"anthropic": {"options": {"baseURL": server.url}}}
        environment = {
            "HOME": str(tmp_path),
            "PATH": os.defpath,
            "CODELOOP_CONFIG_CONTENT": json.dumps({"provider": provider}),
            "CODELOOP_DISABLE_MODELS_FETCH": "1",
        }
        for command, typed in ((sign_in, KEY), (work, "")):
            done = subprocess.run(
                ["sh", "-c", command],
                env=environment,
                cwd=tmp_path,
                input=typed,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    assert "All is well." in done.stdout
