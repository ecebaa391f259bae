"""A session that runs is moved: it stops, says where it went, and goes on only there;
a kill leaves no two of it.
"""

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.program import HANGING, Desk, bash, serving, steps
from tests.support.answers import Answer

PACKING = ("move.stored", "move.stopped", "move.written", "move.named")
MOVING = (*PACKING, "move.unpacked")


def repository(desk: Desk) -> None:
    desk.git("init", "-q", "-b", "main")
    (desk.work / "a.txt").write_text("one\n")
    desk.git("add", "-A")
    desk.git("commit", "-q", "-m", "first")


def session_ids(desk: Desk) -> list[str]:
    return [
        each["id"]
        for each in json.loads(desk.run("session", "list", "--archived", "--json").stdout)
    ]


@pytest.mark.slow
def test_a_running_session_stops_after_its_step_and_goes_on_elsewhere(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    here, there = Desk(tmp_path / "here"), Desk(tmp_path / "there")
    repository(here)
    there.work.rmdir()
    subprocess.run(
        ["git", "clone", "-q", str(here.work), str(tmp_path / "there" / "work")], check=True
    )
    step = "touch began; until [ -e ended ]; do sleep 0.1; done; echo made > new.txt"
    script = (bash(step), bash("echo never > never.txt"), Answer(text="Done."))
    file = tmp_path / "moved.zip"
    with serving(steps(*script)) as server:
        here.use(server)
        there.use(server)
        running = here.start("run", "--format", "json", "make the files")
        try:
            deadline = time.monotonic() + 60
            while not (here.work / "began").exists():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            (session_id,) = session_ids(here)
            moving = here.start("session", "move", session_id, "-o", str(file))
            assert moving.stderr is not None
            assert "stopped after its step" in moving.stderr.readline()
            (here.work / "ended").touch()
            said, _ = moving.communicate(timeout=HANGING)
            assert (moving.returncode, "Stopped its turn" in said) == (0, True), said
            out, _ = running.communicate(timeout=HANGING)
        finally:
            running.kill()
            running.communicate()
        end = json.loads(out.splitlines()[-1])
        assert (running.returncode, end["reason"]) == (130, "moved")
        assert str(file) in end["message"]
        refused = here.run("run", "--session", session_id, "go on")
        assert refused.returncode != 0
        assert f"moved to {file}" in refused.stderr
        assert not (here.work / "never.txt").exists()
        taking = ("session", "move", "--import", str(file))
        options = there.options(CODELOOP_FAULT="move.unpacked:1:kill")
        assert (
            subprocess.run(
                [*there.command, *taking], **options, capture_output=True, check=False
            ).returncode
            == -9
        )
        assert len(json.loads(there.run("worktree", "list", "--json").stdout)) == 1, (
            "what was cut off is named"
        )
        taken = there.run(*taking)
        assert taken.returncode == 0, taken.stderr
        again = taken.stdout.strip().rpartition("Go on with: codeloop ")[2].split()
        assert again[-1] == "continue"
        tree = Path(taken.stdout.splitlines()[0].rpartition(", in ")[2])
        assert (tree / "new.txt").read_text() == "made\n", "the step that ran was recorded"
        assert there.run("run", *again).returncode == 0
        assert (tree / "never.txt").exists(), "the next step was made where it went"
        twice = there.run(*taking)
        assert (twice.returncode, "is here already" in twice.stderr) == (2, True), twice.stderr


@pytest.mark.slow
@pytest.mark.parametrize("point", PACKING)
def test_a_move_that_is_killed_leaves_no_session_that_goes_on_twice(
    tmp_path: Path, point: str
) -> None:
    desk, file = Desk(tmp_path), tmp_path / "moved.zip"
    repository(desk)
    with serving(lambda _received: Answer(text="Noted.")) as server:
        desk.use(server)
        assert desk.run("run", "remember the number 7").returncode == 0
        (desk.work / "new.txt").write_text("new\n")
        (session_id,) = session_ids(desk)
        command = [*desk.command, "session", "move", session_id, "-o", str(file)]
        options = desk.options(CODELOOP_FAULT=f"{point}:1:kill")
        assert subprocess.run(command, **options, capture_output=True, check=False).returncode == -9
        assert file.exists() == (point == "move.named")
        assert "--cancel" in desk.run("run", "--session", session_id, "go on").stderr
        assert desk.run("session", "move", session_id, "-o", str(file)).returncode == 0
        assert file.exists()
        assert desk.run("session", "move", session_id, "--cancel").returncode == 0
        assert desk.run("run", "--session", session_id, "go on").returncode == 0


@pytest.mark.slow
def test_a_file_that_cannot_be_written_leaves_the_session_here(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    repository(desk)
    with serving(lambda _received: Answer(text="Noted.")) as server:
        desk.use(server)
        assert desk.run("run", "hello").returncode == 0
        refused = desk.run("session", "move", "-o", str(tmp_path / "missing" / "moved.zip"))
        assert (refused.returncode, "The session goes on here." in refused.stderr) == (1, True), (
            refused.stderr
        )
        assert desk.run("run", "--continue", "go on").returncode == 0
