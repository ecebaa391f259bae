"""Servers that do not behave, and those that change what they say, under the real program."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from codeloop.kit.small_files import read_start
from tests.cli.program import Desk, call, lives, result, serving, steps
from tests.extend.mcp.world import PLAIN
from tests.support.answers import Answer

MEMORY = 300_000
"""Kilobytes that the program may take while a server sends 40 MB, of which 32 are read."""


def plain(traces: Path, *, sandbox: bool = False) -> dict[str, Any]:
    """Return the plain server, which leaves its traces;
    in a sandbox its process has another number.
    """
    traces.mkdir(exist_ok=True)
    opened = {"writable": [str(traces)]} if sandbox else False
    return {
        "type": "local",
        "command": [sys.executable, str(PLAIN), str(traces)],
        "sandbox": opened,
    }


def is_running(traces: Path) -> bool:
    """Return whether a program runs that names the folder, in whatever sandbox."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        # Any process may end between the two looks.
        with suppress(FileNotFoundError, ProcessLookupError):
            if lives(int(file.parent.name)) and os.fsencode(traces) in read_start(file, 9999):
                return True
    return False


def measure_peak(process: subprocess.Popen[str]) -> int:
    """Wait for a program's end, and return its largest resident size in kB.

    What `wait4` gives may be larger: what the process that started it had before,
    and its own children.
    """
    peak = 0
    while process.poll() is None:
        found = re.search(
            r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE
        )
        peak = int(found[1]) if found else peak
        time.sleep(0.02)
    return peak


def texts(server: Any) -> list[str]:
    """Return what the model was told of its calls, in order."""
    messages = server.requests[-1].json["messages"]
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


@pytest.mark.slow
def test_servers_that_fail_in_every_way_are_told_of_and_leave_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    traces = {name: tmp_path / name for name in ("bad", "good")}
    script = [
        call("mcp", tool="good_child", arguments={"session": True}),
        call("mcp", tool="bad_flood"),
        call("mcp", tool="bad_garbage"),
        call("mcp", tool="bad_new_tool"),
        call("mcp", tool="bad_die"),
        call("mcp", tool="bad_closes"),
        call("mcp", tool="bad_big", arguments={"size": 40_000_000}),
        call("mcp", tool="good_echo", arguments={"text": "well"}),
        Answer(text="Seen."),
    ]
    with serving(steps(*script)) as model:
        desk.use(model, mcp={name: plain(folder) for name, folder in traces.items()})
        process = desk.start("run", "--format", "json", "--auto", "go")
        peak = measure_peak(process)
        out = process.stdout.read() if process.stdout else ""
    ended = json.loads(out.splitlines()[-1])
    assert (ended["exitCode"], ended["text"]) == (0, "Seen."), ended
    child, flooded, garbage, _, died, closed, big, well = texts(model)
    assert flooded == "flooded"
    assert garbage == "after garbage"
    assert (
        "The MCP server bad is gone: it ended with exit code 3. Its last line: I can't go on"
        in died
    )
    assert "The MCP server bad is gone" in closed
    assert "it sent a message of more than 33,554,432 bytes" in big
    assert well == "echo: well"
    assert 0 < peak < MEMORY, f"{peak} kB"
    pids = [
        int(child),
        *(
            int(pid)
            for folder in traces.values()
            for pid in (folder / "started").read_text().split()
        ),
    ]
    end = time.monotonic() + 60
    while any(map(lives, pids)):
        assert time.monotonic() < end, "a server outlived the program"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_server_that_hangs_ends_with_the_program(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits={"MCP_CALL": 500})
    with serving(
        steps(call("mcp", tool="p_hang"), call("mcp", tool="p_hang"), Answer(text="No answer."))
    ) as model:
        desk.use(model, mcp={"p": plain(tmp_path / "p")})
        done = desk.run("run", "--format", "json", "--auto", "go")
        assert result(done)["text"] == "No answer."
    assert all("it did not answer in time" in text for text in texts(model))
    pids = [int(pid) for pid in (tmp_path / "p" / "started").read_text().split()]
    end = time.monotonic() + 60
    while any(map(lives, pids)):
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", [False, True])
def test_a_kill_of_the_program_ends_its_servers(tmp_path: Path, *, sandbox: bool) -> None:
    desk = Desk(tmp_path)
    with serving(steps(call("mcp", tool="p_hang"))) as model:
        desk.use(model, mcp={"p": plain(tmp_path / "p", sandbox=sandbox)})
        process = desk.start("run", "--auto", "go")
        started = tmp_path / "p" / "started"
        end = time.monotonic() + 60
        while not started.exists() or not started.read_text().strip():
            assert time.monotonic() < end
            time.sleep(0.02)
        assert is_running(tmp_path / "p")
        process.send_signal(signal.SIGKILL)
        process.communicate()
    end = time.monotonic() + 60
    while is_running(tmp_path / "p"):
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_what_a_server_is_and_says_is_asked_about_again_when_it_changes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    traces = tmp_path / "p"
    mine = plain(traces)
    more = [{"name": "extra", "description": "Nice\u200b tool.", "inputSchema": {"type": "object"}}]
    echo = call("mcp", tool="p_echo", arguments={"text": "hi"})
    with serving(steps(echo, Answer(text="Done."))) as model:
        desk.use(model, mcp={"p": mine, "q": plain(tmp_path / "q")})
        assert result(desk.run("run", "--format", "json", "go"))["text"] == "Done."
        assert texts(model) == ["echo: hi"]
        desk.use(model, mcp={"p": {**mine, "environment": {"NEW": "1"}}})
        refused = desk.run("run", "--format", "json", "go")
        (denied,) = result(refused)["denied"]
        assert "NEW" not in texts(model)[0]
        assert denied["tool"] == "mcp"
        assert (traces / "started").read_text().count("\n") == 1, (
            "it is not started before somebody agrees"
        )
        desk.use(model, mcp={"p": mine})
        desk.run("mcp", "debug", "p")
        (traces / "tools.json").write_text(json.dumps(more))
        shown = desk.run("mcp", "debug", "p").stdout
        assert "Its tools have changed since they were agreed to, so a call asks first:" in shown
        assert "+  Nice<U+200B> tool." in shown
        assert len(result(desk.run("run", "--format", "json", "go"))["denied"]) == 1


@pytest.mark.slow
def test_two_servers_with_a_tool_of_one_name_are_told_apart(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    script = [
        Answer(
            calls=(
                *call("p_echo", call_id="1", text="one").calls,
                *call("q_echo", call_id="2", text="two").calls,
            )
        ),
        call("p_pixel"),
        Answer(text="Done."),
    ]
    with serving(steps(*script)) as model:
        rules = {"p_pixel": "ask"}
        desk.use(model, mcp={name: plain(tmp_path / name) for name in ("p", "q")}, permission=rules)
        for name in ("p", "q"):
            desk.run("mcp", "debug", name)
        ended = result(desk.run("run", "--format", "json", "go"))
        offered = [tool["function"]["name"] for tool in model.requests[0].json["tools"]]
        assert {"p_echo", "q_echo"} <= set(offered)
        assert texts(model)[:2] == ["echo: one", "echo: two"]
        assert [each["tool"] for each in ended["denied"]] == ["p_pixel"], (
            "its readOnlyHint allows nothing"
        )


@pytest.mark.slow
def test_a_servers_question_that_nobody_answers_is_no_matter_of_permission(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(call("mcp", tool="p_form"), Answer(text="Done."))) as model:
        desk.use(model, mcp={"p": plain(tmp_path / "p")}, permission={"*": "allow"})
        done = desk.run("run", "--auto", "--title", "T", "go")
    assert done.returncode == 5, done.stderr
    assert (
        "A question was not answered because nobody could be asked. Say in the prompt"
        in done.stderr
    )
    assert "--auto" not in done.stderr
