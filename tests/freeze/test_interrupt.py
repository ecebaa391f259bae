"""Ctrl-C ends the real program at once while it works on what once made it stand still."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Desk, call, events, serving, steps
from tests.support.answers import Answer

EQUAL = "a\n" * 200_000
NEVER = Answer(text="Done.", hang=120)


def hostile_ignore_file(desk: Desk) -> Answer:
    desk.git("init", "-q")
    lines = [
        "*a" * 20 + "b",
        "**/" + "a/" * 300 + "b",
        *(f"*x{number}*y*z" for number in range(10_000)),
    ]
    (desk.work / ".gitignore").write_text("\n".join(lines))
    for number in range(200):
        (desk.work / ("a" * 120 + str(number))).write_text("x\n")
    return call("write", filePath="made.txt", content="x\n")


def hostile_edit(desk: Desk) -> Answer:
    (desk.work / "f.txt").write_text(EQUAL)
    return call("edit", filePath="f.txt", oldString="a\n" * 99_999 + "b\na\n", newString="b\n")


def hostile_rules(desk: Desk) -> Answer:
    rules = {f"{'*ab' * 40}{number}": "ask" for number in range(200)}
    (desk.work / "opencode.json").write_text(json.dumps({"permission": {"bash": rules}}))
    return call("bash", command="ab" * 2_000, description="x")


@pytest.mark.slow
@pytest.mark.parametrize("prepare", [hostile_ignore_file, hostile_edit, hostile_rules])
def test_ctrl_c_works_with_a(prepare: Callable[[Desk], Answer], tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first = prepare(desk)
    with serving(steps(first, NEVER)) as server:
        desk.use(server)
        child = desk.start("run", "--format", "json", "--title", "T", "work")
        until = time.monotonic() + 60
        while len(server.requests) < 2 and child.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130, (out[-500:], err[-500:])
    assert events(out)[-1]["reason"] == "interrupted"
    assert len(server.requests) >= 2, "the call came to an end by itself"
