"""`codeloop mcp serve` as another program starts it: over its stdin and stdout,
which hold the protocol only.
"""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp_types import ElicitResult, ErrorData, Implementation

from tests.cli.program import Desk, bash, call, lives, serving, steps
from tests.support.answers import Answer

HELLO = {
    "capabilities": {},
    "protocolVersion": "2025-06-18",
    "clientInfo": {"name": "t", "version": "1"},
}


def started(desk: Desk, *flags: str) -> subprocess.Popen[str]:
    """Start it with pipes."""
    pipe = subprocess.PIPE
    command = [*desk.command, "mcp", "serve", *flags]
    return subprocess.Popen(
        command, **desk.options(), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def message(method: str, number: int | None = None, **params: Any) -> str:
    """Return a message of the protocol."""
    head = {"jsonrpc": "2.0", "method": method} | ({"id": number} if number is not None else {})
    return json.dumps(head | {"params": params}) + "\n"


@pytest.mark.slow
async def test_another_program_prompts_a_session_and_is_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    asked: list[str] = []

    async def person(context: Any, params: Any) -> ElicitResult | ErrorData:
        assert context
        asked.append(params.message)
        return ElicitResult(action="accept", content={"decision": "Allow once"})

    with serving(
        steps(call("write", filePath="a.txt", content="x"), Answer(text="Written."))
    ) as model:
        desk.use(model)
        command = [*desk.command, "mcp", "serve", "--profile", "ask"]
        place = StdioServerParameters(
            command=command[0], args=command[1:], env=desk.options()["env"], cwd=desk.work
        )
        who = Implementation(name="test", version="1")
        async with (
            stdio_client(place) as streams,
            ClientSession(*streams, client_info=who, elicitation_callback=person) as session,
        ):
            greeted = await session.initialize()
            assert greeted.server_info.name == "codeloop"
            done = await session.call_tool("prompt", {"prompt": "Write a.txt"})
    report: Any = done.structured_content
    assert (report["status"], report["answer"]) == ("done", "Written.")
    assert (desk.work / "a.txt").read_text() == "x"
    assert "codeloop asks: Create a.txt (write)" in asked[0]


@pytest.mark.slow
def test_stdout_holds_the_protocol_alone_and_the_end_of_stdin_ends_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo $$ > pid; exec sleep 600"))) as model:
        desk.use(model, sandbox="off", permission={"bash": "allow"})
        process = started(desk)
        assert process.stdin
        assert process.stdout
        process.stdin.write(
            "garbage\n" + message("initialize", 1, **HELLO) + message("notifications/initialized")
        )
        process.stdin.write(
            message("tools/call", 2, name="prompt", arguments={"prompt": "Wait", "wait": 0})
        )
        process.stdin.flush()
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [line["id"] for line in lines] == [1, 2]
        assert lines[1]["result"]["structuredContent"]["status"] == "working"
        pid = _pid(desk.work / "pid")
        rest, _ = process.communicate(timeout=60)  # closes its stdin
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
        assert process.returncode == 0
        assert not lives(pid)


@pytest.mark.slow
def test_a_signal_ends_it_while_it_waits(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(share="disabled")
    process = started(desk)
    assert process.stdin
    assert process.stdout
    process.stdin.write(message("initialize", 1, **HELLO))
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    process.communicate()
    wrong = desk.run("mcp", "serve", "--agent", "none", "--dir", "nowhere")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "The directory nowhere of --dir does not exist" in wrong.stderr
    (desk.work / "notes").touch()
    assert (
        "The directory notes of --dir is a file"
        in desk.run("run", "--dir", "notes", "hello").stderr
    )


def _pid(file: Path) -> int:
    end = time.monotonic() + 60
    while not (file.exists() and file.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return int(file.read_text())
