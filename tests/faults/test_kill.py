"""SIGKILL at any moment: nothing acknowledged is lost, nothing is run twice,
the history that goes on is valid.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.program import (
    UNCONFINED,
    Desk,
    Protocol,
    bash,
    call,
    events,
    lives,
    result,
    serving,
    steps,
)
from tests.faults.stored_session import check_integrity, list_calls_without_result, read_parts
from tests.support.answers import Answer, Call
from tests.support.model_server import ModelServer
from tests.support.sandbox_support import find_sandbox

HELLO = Answer(text="Hello.")


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.005)


def kill(child: subprocess.Popen[str]) -> str:
    """Kill only the program itself, as the kernel's killer would; return what it had said."""
    with suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    out, _ = child.communicate(timeout=60)
    return out


def go_on(desk: Desk, server: ModelServer) -> str:
    """Go on after a kill; return the last request. The server refuses a history in
    which a call has no result.
    """
    server.answers = [Answer(text="I go on.")]
    ended = result(desk.run("run", "--format", "json", "-c", "go on"))
    assert (ended["exitCode"], ended["text"]) == (0, "I go on."), ended
    check_integrity(desk)
    assert list_calls_without_result(desk) == []
    return server.requests[-1].body.decode()


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_kill_in_a_command_is_told_and_the_command_not_run_again(
    tmp_path: Path, protocol: Protocol
) -> None:
    desk = Desk(tmp_path)
    command = "echo side >> log; echo $$ > pid; sleep 60 & echo $! >> pid; touch begun; wait"
    with serving(steps(bash("echo first >> log", "c0"), bash(command), HELLO)) as server:
        desk.use(server, protocol, **UNCONFINED)
        child = desk.start("run", "--format", "json", "--title", "T", "work")
        wait_for((desk.work / "begun").exists)
        kill(child)
        pids = [int(word) for word in (desk.work / "pid").read_text().split()]
        wait_for(lambda: not any(map(lives, pids)))
        sent = go_on(desk, server)
        again = go_on(desk, server)
    assert (desk.work / "log").read_text() == "first\nside\n"
    assert "nterrupted" in sent
    assert (
        sent.count("Interrupted: the call was started")
        == again.count("Interrupted: the call was started")
        == 1
    )


def test_a_kill_leaves_no_work_folder_of_an_overlay(tmp_path: Path) -> None:
    if find_sandbox() != "namespaces":
        pytest.skip("no overlay can be mounted over the caches here")
    desk = Desk(tmp_path)
    (tmp_path / ".cache/pip").mkdir(parents=True)
    with serving(steps(bash("touch begun; sleep 60", "c0"), HELLO)) as server:
        desk.use(server)
        child = desk.start("run", "--format", "json", "work")
        wait_for((desk.work / "begun").exists)
        works = [path.with_name("work") for path in tmp_path.glob("**/*.sandbox/1/*/upper")]
        assert works
        assert all(map(Path.exists, works))
        kill(child)
        wait_for(lambda: not any(map(Path.exists, works)))


@pytest.mark.parametrize(
    "broken",
    [
        Answer(text="one two three four five", deltas=0, stall_after=5),
        Answer(
            reasoning="I ponder this for long.",
            signature="s",
            text="a b c d e",
            deltas=0,
            stall_after=4,
        ),
        Answer(
            calls=(
                Call(
                    "bash", '{"command": "echo side >> log", "description": "a long text for it"}'
                ),
            ),
            stall_after=5,
        ),
        Answer(hang=600),
    ],
    ids=["text", "reasoning", "arguments", "header"],
)
def test_a_kill_in_the_middle_of_an_answer(tmp_path: Path, broken: Answer) -> None:
    desk = Desk(tmp_path)
    with serving([broken]) as server:
        desk.use(server, "anthropic")
        child = desk.start("run", "--format", "json", "--title", "T", "work")
        wait_for(lambda: server.requests)
        time.sleep(0.5)
        kill(child)
        sent = go_on(desk, server)
    assert "work" in sent
    assert not (desk.work / "log").exists()


def works_in(folder: Path) -> bool:
    """Return whether a process has `folder` as its working directory."""
    for process in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if process.readlink() == folder:
                return True
    return False


def stopped_children(pid: int) -> list[int]:
    """Stop a program, so that it starts nothing more,
    and return what it started: what runs its commands.
    """
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    found: list[int] = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(status.parent.name))
    return found


def check_kills(folder: Path, seed: int, kills: int) -> None:
    """Kill at random moments of a turn of many steps, and go on each time."""
    chance = random.Random(seed)
    desk = Desk(folder)
    (desk.work / "a.txt").write_text("0\n")
    work = [
        Answer(
            text=f"Step {number}.",
            calls=(
                Call("bash", f'{{"command": "echo {number}-$$ >> log"}}', f"b{number}"),
                *call(
                    "write", call_id=f"w{number}", filePath=f"{number}.txt", content="x" * 50
                ).calls,
            ),
        )
        for number in range(40)
    ]
    with serving(steps(*work)) as server:
        desk.use(server, **UNCONFINED)
        for _ in range(kills):
            server.answers = steps(*work)
            child = desk.start("run", "--format", "json", "--title", "T", "work")
            before = len(server.requests)
            wait_for(lambda before=before: len(server.requests) > before)
            time.sleep(chance.uniform(0, 0.35))
            commands = stopped_children(child.pid)
            out = kill(child)
            lines = events(out[: out.rfind("\n") + 1]) if "\n" in out else []
            shown = {line["part"]["id"] for line in lines if line["type"] == "tool_use"}
            assert shown <= {part["id"] for part in read_parts(desk)}, "what was shown is stored"
            # A command that was on its way may have come to its end.
            wait_for(lambda pids=commands: not works_in(desk.work) and not any(map(lives, pids)))
            ran = (desk.work / "log").read_text().split() if (desk.work / "log").exists() else []
            assert len(set(ran)) == len(ran)
            go_on(desk, server)
            after = (desk.work / "log").read_text().split() if (desk.work / "log").exists() else []
            assert after == ran, "nothing is run by itself after a crash"


def test_kills_at_random_moments(tmp_path: Path) -> None:
    check_kills(tmp_path, 3, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_kills_at_many_random_moments(tmp_path: Path, seed: int) -> None:
    check_kills(tmp_path, 100 + seed, 10)
