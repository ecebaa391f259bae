"""A turn that can't be followed any more ends with an error;
it never waits for an answer that nobody can give.
"""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from codeloop.cli.follow.subagents import BackgroundPolicy
from codeloop.cli.output.result import Outcome
from codeloop.cli.output.streams import OutputQueue, open_standard_streams
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.questions.prompter import read_line
from codeloop.cli.run.signals import SignalHandlers
from codeloop.cli.run.turn import RunTurn
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import PROMPT, Prompt, TextPartInput
from codeloop.schema.event import Event, PartUpdated
from codeloop.schema.part import TextPart, ToolPart
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    wait_for_result,
)


class Broken:
    """A view that fails at one kind of part, as a fault in ours would."""

    def __init__(self, kind: type[TextPart] | type[ToolPart]) -> None:
        self.kind = kind
        self.is_live = False

    def show(self, event: Event) -> None:
        part = event.properties.part if isinstance(event, PartUpdated) else None
        if type(part) is self.kind:
            raise LookupError("a fault")

    def show_subagent(self, event: Event, title: str) -> None:
        del event, title

    def tick(self) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        raise LookupError(text)

    def finish(self, outcome: Outcome) -> None:
        del outcome


async def outcome(made: ScriptedProject, view: Broken) -> Outcome:
    stdout, _ = open_standard_streams(OutputQueue(asyncio.get_running_loop()))
    turn = RunTurn(
        made.client,
        made.view().session,
        view,
        Answerer(None, auto=False),
        stdout=stdout,
        resume_command="codeloop run",
        background=BackgroundPolicy(),
    )
    prompt = Prompt(session_id=made.session_id, parts=[TextPartInput(text="go")])
    return await wait_for_result(
        turn.run(
            "",
            lambda: made.client.call(PROMPT, prompt),
            None,
            SignalHandlers(lambda: None, lambda: None),
        ),
        20,
    )


async def test_a_fault_while_it_is_shown_ends_the_turn(tmp_path: Path) -> None:
    work = make_answer(make_call("bash", command="sleep 30"))
    async with open_scripted_project(tmp_path, [work, ScriptedAnswer(text="Done.")]) as made:
        ended = await outcome(made, Broken(ToolPart))
    assert (ended.exit_code, ended.reason) == (1, "error")
    assert "could not be followed any more: LookupError: a fault" in ended.message


async def test_a_fault_at_the_very_end_is_no_success(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as made:
        ended = await outcome(made, Broken(TextPart))
    assert (ended.exit_code, ended.reason) == (1, "error")


async def test_a_question_that_cannot_be_answered_ends_the_turn(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    work = make_answer(make_call("read", filePath=str(tmp_path / "outside")))
    async with open_scripted_project(tmp_path, [work, ScriptedAnswer(text="Done.")]) as made:
        ended = await outcome(made, Broken(TextPart))
    assert (ended.exit_code, ended.reason) == (1, "error")


async def test_a_terminal_that_is_gone_is_the_end_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = os.openpty()
    with os.fdopen(slave) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        reading = asyncio.create_task(read_line())
        await asyncio.sleep(0)
        os.close(master)
        assert await wait_for_result(reading) is None
