"""The reference's `run --attach` does whole turns against our server."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.stage import PASSWORD, Stage, find_reference_program, open_stage, run_server

pytestmark = pytest.mark.interop


@dataclass(frozen=True, slots=True)
class Attached:
    """The reference's program, attached to a server of ours."""

    program: str
    stage: Stage
    url: str

    def run(self, *words: str, code: int = 0) -> list[dict[str, Any]]:
        """Run it to its end and return its lines; a line is an event."""
        command = [
            self.program,
            "run",
            "--attach",
            self.url,
            "-p",
            PASSWORD,
            "--format",
            "json",
            *words,
        ]
        done = self.stage.ask(command)
        assert done.returncode == code, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def attached(tmp_path: Path) -> Generator[Attached]:
    program = find_reference_program()
    with open_stage(tmp_path) as stage, run_server(stage) as url:
        yield Attached(program, stage, url)


def texts(events: list[dict[str, Any]]) -> list[str]:
    return [event["part"]["text"] for event in events if event["type"] == "text"]


def session_of(events: list[dict[str, Any]]) -> str:
    (session,) = {event["sessionID"] for event in events}
    return session


def test_a_turn_with_tools_is_told_in_full(attached: Attached) -> None:
    events = attached.run("--auto", "write the note")
    assert [event["type"] for event in events] == [
        "step_start",
        "tool_use",
        "tool_use",
        "step_finish",
        "step_start",
        "text",
        "step_finish",
    ]
    tools = [event["part"] for event in events if event["type"] == "tool_use"]
    assert {(tool["tool"], tool["state"]["status"]) for tool in tools} == {
        ("write", "completed"),
        ("bash", "completed"),
    }
    assert texts(events) == ["Done."]
    assert (attached.stage.project / "note.txt").read_text() == "kept\n"
    assert (attached.stage.project / "said.txt").read_text() == "said\n"


def test_what_it_would_have_to_ask_for_is_rejected(attached: Attached) -> None:
    events = attached.run("write the note")
    states = {
        event["part"]["tool"]: event["part"]["state"]["status"]
        for event in events
        if event["type"] == "tool_use"
    }
    assert states == {"write": "completed", "bash": "error"}
    assert not (attached.stage.project / "said.txt").exists()


def test_it_goes_on_with_a_session_the_last_one_or_a_copy(attached: Attached) -> None:
    first = session_of(attached.run("hello"))
    second = session_of(attached.run("hello"))
    for words, wanted in [(("-s", first), first), (("-c",), first)]:
        events = attached.run(*words, "and again")
        assert (session_of(events), texts(events)) == (wanted, ["Hello."])
    fork = attached.run("-s", second, "--fork", "and again")
    assert session_of(fork) not in {first, second}
    assert texts(fork) == ["Hello."]


def test_a_command_is_run(attached: Attached) -> None:
    assert texts(attached.run("--command", "greet", "you")) == ["Hello."]


def test_a_model_is_chosen(attached: Attached) -> None:
    events = attached.run("-m", "mine/talker", "--title", "named", "hello")
    assert texts(events) == ["Hello."]


def test_plain_output_is_the_answer(attached: Attached) -> None:
    command = [attached.program, "run", "--attach", attached.url, "-p", PASSWORD, "hello"]
    done = attached.stage.ask(command)
    assert (done.returncode, done.stdout.strip()) == (0, "Hello.")


def test_a_wrong_password_is_an_error(attached: Attached) -> None:
    command = [attached.program, "run", "--attach", attached.url, "-p", "wrong", "hello"]
    assert attached.stage.ask(command).returncode != 0
