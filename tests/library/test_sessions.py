"""Sessions of the library: streamed, answered, limited, stopped, resumed;
in this process and on a server.
"""

import asyncio
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import codeloop
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import SESSION_STATUS
from codeloop.schema.operation import NoArguments
from tests.library.opened import Open, here, opened, work
from tests.support.scripted_project import make_answer, make_call

__all__ = ["opened"]
SAYS = ScriptedAnswer(text="It is done.", deltas=3)
WRITES = make_answer(make_call("write", filePath="notes.txt", content="one\n"), text="I write.")
SLEEPS = make_answer(make_call("bash", command="sleep 600", description="wait"))
FREE = "yolo"


def untold(*towns: str) -> str:
    return ""


async def test_a_stream_tells_what_happens_and_ends_with_the_answer(
    opened: Open, tmp_path: Path
) -> None:
    async with opened([WRITES, SAYS]) as project:
        session = await project.session(title="Notes")
        events = [event async for event in session.stream("write notes")]
        kinds = [
            type(event).__name__
            for event in events
            if not isinstance(event, codeloop.Notice | codeloop.ToolReported)
        ]
        assert kinds[:4] == ["TextAdded", "ToolStarted", "ToolEnded", "FilesChanged"]
        assert kinds[4:] == [
            "StepEnded",
            "TextAdded",
            "TextAdded",
            "TextAdded",
            "StepEnded",
            "TurnDone",
        ]
        done = events[-1]
        assert isinstance(done, codeloop.TurnDone)
        assert (
            "".join(event.text for event in events if isinstance(event, codeloop.TextAdded))
            == "I write.It is done."
        )
        assert (done.answer.text, done.answer.reason, done.answer.steps) == (
            "It is done.",
            "done",
            2,
        )
        assert done.answer.files == (str(work(tmp_path) / "notes.txt"),)
        assert [(use.tool, use.state) for use in done.answer.tools] == [("write", "completed")]
        assert done.answer.tokens.input > 0
        assert (session.title, done.answer.session_id) == ("Notes", session.id)


async def test_a_session_is_resumed_by_its_id_and_found_as_the_last(opened: Open) -> None:
    async with opened([SAYS, SAYS]) as project:
        with pytest.raises(codeloop.CodeloopError, match=r"no session in .* yet"):
            await project.last()
        first = await project.session()
        assert str(await first.ask("one")) == "It is done."
        again = await project.session(first.id)
        await again.ask("two", files=[])
        assert (await project.last()).id == first.id
        assert [each.id for each in await project.sessions()] == [first.id]
        said = await again.messages()
        assert [(each.role, each.text) for each in said] == [
            ("user", "one"),
            ("assistant", "It is done."),
            ("user", "two"),
            ("assistant", "It is done."),
        ]
        copy = await again.fork()
        await again.delete()
        assert [each.id for each in await project.sessions()] == [copy.id]
        with pytest.raises(codeloop.CodeloopError, match="Session not found"):
            await project.session(first.id)


async def test_undo_takes_back_what_a_turn_did(opened: Open, tmp_path: Path) -> None:
    async with opened([WRITES, SAYS]) as project:
        session = await project.session()
        await session.ask("write notes")
        file = work(tmp_path) / "notes.txt"
        assert file.exists()
        assert any("notes.txt" in line for line in await session.undo())
        assert not file.exists()
        await session.redo()
        assert file.read_text() == "one\n"


async def test_files_go_along_with_a_prompt(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "seen.txt").write_text("what the model sees\n")
    async with opened([SAYS]) as project:
        session = await project.session()
        await session.ask("look", files=[tmp_path / "seen.txt"])
        with pytest.raises(
            codeloop.CodeloopError, match=r"missing\.txt .*(does not exist|can't be read)"
        ):
            await session.ask("look", files=[tmp_path / "missing.txt"])


async def test_prompts_of_one_session_are_answered_one_after_the_other(opened: Open) -> None:
    answers = [ScriptedAnswer(text=f"{number}", delay_ms=20) for number in range(3)]
    async with opened(answers) as project:
        session = await project.session()
        start = time.monotonic()
        given = await asyncio.gather(*(session.ask(f"prompt {number}") for number in range(3)))
        assert [answer.text for answer in given] == ["0", "1", "2"]
        # The wait for earlier turns is not part of a turn.
        assert sum(answer.duration for answer in given) <= time.monotonic() - start


async def test_a_limit_is_an_error_with_what_there_was(opened: Open) -> None:
    async with opened([WRITES, SAYS], limits=codeloop.TurnLimits(steps=1)) as project:
        session = await project.session()
        with pytest.raises(codeloop.LimitReached) as caught:
            await session.ask("write notes")
        assert caught.value.answer.reason == "limit"
        assert [use.tool for use in caught.value.answer.tools] == ["write"]


async def test_a_turn_that_takes_too_long_is_stopped(opened: Open, tmp_path: Path) -> None:
    # On a slow machine the time is over before the model was asked: then the
    # next turn gets this call.
    waits = make_answer(
        make_call("bash", command="test -e stopped || sleep 600", description="wait")
    )
    async with opened([waits, SAYS], profile=FREE) as project:
        session = await project.session()
        with pytest.raises(codeloop.LimitReached, match=r"stopped after 0\.2 s") as caught:
            await session.ask("wait", limits=codeloop.TurnLimits(seconds=0.2))
        assert caught.value.answer.reason == "timeout"
        (work(tmp_path) / "stopped").touch()
        assert (await session.ask("and now?")).text == "It is done."


async def test_a_time_that_is_over_before_the_prompt_is_stored_is_a_limit_too(opened: Open) -> None:
    async with opened([SAYS, SAYS], profile=FREE) as project:
        session = await project.session()
        with pytest.raises(codeloop.LimitReached, match=r"stopped after 0\.0001 s") as caught:
            await session.ask("wait", limits=codeloop.TurnLimits(seconds=0.0001))
        assert caught.value.answer.reason == "timeout"
        assert (await session.ask("and now?")).text == "It is done."


async def test_a_cancelled_task_stops_the_turn(opened: Open) -> None:
    async with opened([SLEEPS, SAYS], profile=FREE) as project:
        session = await project.session()
        started = asyncio.Event()

        async def work() -> None:
            async for event in session.stream("wait"):
                if isinstance(event, codeloop.ToolStarted):
                    started.set()

        task = asyncio.create_task(work())
        await asyncio.wait_for(started.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await project.client.call(SESSION_STATUS, NoArguments()) == {}
        last = (await session.messages())[-1].tools[0]
        assert (last.state, "interrupted" in last.output.lower()) == ("failed", True)
        assert (await session.ask("go on")).text == "It is done."


async def test_leaving_a_stream_early_stops_the_turn(opened: Open) -> None:
    async with opened([SLEEPS, SAYS], profile=FREE) as project:
        session = await project.session()
        async with aclosing(session.stream("wait")) as events:
            async for event in events:
                if isinstance(event, codeloop.ToolStarted):
                    break
        assert await project.client.call(SESSION_STATUS, NoArguments()) == {}
        async for event in session.stream("again"):
            if isinstance(event, codeloop.TextAdded):
                break  # the generator is closed when nobody holds it any more


async def test_stop_ends_a_turn_from_elsewhere(opened: Open) -> None:
    async with opened([SLEEPS], profile=FREE) as project:
        session = await project.session()
        asking = asyncio.create_task(session.ask("wait"))
        status: dict[str, object] = {}
        while not status:
            await asyncio.sleep(0.01)
            status = dict(await project.client.call(SESSION_STATUS, NoArguments()))
        await session.stop()
        with pytest.raises(codeloop.TurnFailed) as caught:
            await asking
        assert caught.value.answer.reason == "aborted"


async def test_a_failure_of_the_service_is_an_error(opened: Open) -> None:
    async with opened([]) as project:
        with pytest.raises(codeloop.TurnFailed, match="no further main answer"):
            await project.ask("hello")


async def test_what_is_wrong_is_said_before_anything_is_sent(opened: Open) -> None:
    async with opened([SAYS]) as project:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"model": "gpt"}, "PROVIDER/MODEL"),
            ({"agent": "nobody"}, "Agent not found: nobody"),
            ({"profile": "loose"}, "There is no profile 'loose'"),
            ({"permission": {"bash": "never"}}, "`allow`, `ask` or `deny`"),
            ({"tools": [untold]}, "untold"),
        ]
        for options, why in wrong:
            with pytest.raises(codeloop.CodeloopError, match=why):
                await project.session(**options)
        mistyped: dict[str, Any] = {"profil": "plan"}
        with pytest.raises(TypeError, match=r"no option 'profil'\. Did you mean `profile`"):
            await project.session(**mistyped)
        with pytest.raises(codeloop.CodeloopError, match="prompt is empty"):
            await project.ask(" ")
        assert await project.sessions() == []


@pytest.mark.parametrize("session_id", ["ses_none", "ses_" + "0" * 26])
async def test_an_unknown_session_is_an_error_of_its_own(opened: Open, session_id: str) -> None:
    async with opened([SAYS]) as project:
        with pytest.raises(
            codeloop.SessionNotFound, match=f"Session not found: {session_id}"
        ) as lost:
            await project.session(session_id)
        assert lost.value.session_id == session_id
        session = await project.session()
        await session.delete()
        for call in (session.ask("hello"), session.messages(), session.fork(), session.delete()):
            with pytest.raises(codeloop.SessionNotFound, match=session.id):
                await call


async def test_a_prompt_that_could_not_be_sent_leaves_no_empty_session(
    opened: Open, tmp_path: Path
) -> None:
    async with opened([SAYS]) as project:
        with pytest.raises(codeloop.CodeloopError, match=r"missing\.txt"):
            await project.ask("look", files=[tmp_path / "missing.txt"])
        assert await project.sessions() == []


async def test_a_session_of_another_directory_is_named(tmp_path: Path) -> None:
    async with here(tmp_path, [SAYS]) as project:
        session = await project.session()
    (tmp_path / "other").mkdir()
    environment = {"CODELOOP_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home")}
    async with codeloop.open(tmp_path / "other", environment=environment) as project:
        with pytest.raises(codeloop.CodeloopError, match=r"belongs to .*work: open that"):
            await project.session(session.id)
