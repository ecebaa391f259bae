"""A command line that a person runs: in the session's shell, without a question,
and seen by the model later.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.title import is_untitled
from codeloop.model.chat import AssistantModelMessage, CallPiece
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import (
    ABORT,
    PROMPT,
    PROMPT_ASYNC,
    SESSION_SHELL,
    MessageWithParts,
    Prompt,
    RunShell,
    TextPartInput,
)
from codeloop.schema.api.session_requests import SESSION_UPDATE, SessionId, UpdateSession
from codeloop.schema.api.session_undo import SESSION_REVERT, RevertSession
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import TextPart, ToolPart, ToolStateCompleted, ToolStateRunning
from codeloop.schema.permission import PermissionRule
from tests.support.scripted_project import (
    ScriptedProject,
    check_turns,
    join_texts,
    list_texts,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)

DONE = ScriptedAnswer(text="Done.")


async def run(it: ScriptedProject, command: str, **more: Any) -> MessageWithParts:
    async with asyncio.timeout(60):
        return await it.client.call(
            SESSION_SHELL, RunShell(session_id=it.session_id, command=command, **more)
        )


def is_at_end(pipe: int) -> bool:
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


def state(answer: MessageWithParts) -> ToolStateCompleted:
    (part,) = answer.parts
    assert isinstance(part, ToolPart)
    assert isinstance(part.state, ToolStateCompleted)
    return part.state


async def refused(wait: Any) -> OperationError:
    with pytest.raises(OperationError) as raised:
        await wait
    return raised.value


async def test_a_session_of_commands_is_titled_by_the_first_until_there_is_a_prompt(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        await run(it, "echo hi\necho there")
        await run(it, "true")
        assert it.view().session.title == "!echo hi"
        await it.prompt("mend it")
        assert it.view().session.title == "mend it"


async def test_a_command_is_stored_as_a_message_and_a_call_and_no_model_is_asked(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        answer = await run(it, "echo hi")
        done = state(answer)
        assert (done.input, done.output, done.title) == ({"command": "echo hi"}, "hi\n", "")
        assert (done.metadata["output"], done.metadata["exit"]) == ("hi\n", 0)
        said, stored = it.view().entries
        assert isinstance(said.info, UserMessage)
        assert [(type(part), getattr(part, "synthetic", None)) for part in said.parts] == [
            (TextPart, True)
        ]
        assert isinstance(answer.info, AssistantMessage)
        assert answer.info.parent_id == said.info.id
        assert answer.info.time.completed is not None
        assert (stored.info, list(stored.parts)) == (answer.info, answer.parts)
        assert it.model.requests == []
        assert it.project.store.statuses == {}


async def test_the_model_sees_the_command_and_its_output_with_the_next_prompt(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, [DONE, DONE]) as it:
        await run(it, "echo hi; exit 3")
        await it.prompt("what happened?")
        (request,) = it.model.requests
        check_turns(request.messages)
        made = [
            p
            for turn in request.messages
            if isinstance(turn, AssistantModelMessage)
            for p in turn.content
        ]
        assert [(p.name, p.arguments) for p in made if isinstance(p, CallPiece)] == [
            ("bash", '{"command":"echo hi; exit 3"}')
        ]
        (output,) = list_texts(request.messages[2])
        assert output.startswith("hi\n")
        assert "exit code 3" in output
        await run(it, "echo more")
        await it.prompt("and now?")
        assert it.model.requests[1].messages[: len(request.messages)] == request.messages
        check_turns(it.model.requests[1].messages)


async def test_no_rule_stands_between_a_person_and_their_command(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        deny = [
            PermissionRule(permission=name, pattern="*", action="deny")
            for name in ("bash", "external_directory", "read")
        ]
        await it.client.call(
            SESSION_UPDATE, UpdateSession(session_id=it.session_id, permission=deny)
        )
        (tmp_path / "x.env").write_text("K=1\n")
        assert state(await run(it, f"cat {tmp_path}/x.env")).output == "K=1\n"
        assert it.project.store.list_pending_permissions() == []


@pytest.mark.slow
async def test_folder_and_exports_last_from_command_to_command_and_keys_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="pwd; echo $X")), DONE]
    ) as it:
        (it.work / "sub").mkdir()
        await run(it, "cd sub; export X=5")
        assert state(await run(it, "pwd; echo $X")).output == f"{it.work}/sub\n5\n"
        assert "sk-secret" not in state(await run(it, "env")).output
        await it.prompt()
        assert f"{it.work}/sub\n5\n" in it.results()[-1]


async def test_an_abort_completes_the_call_with_a_note(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        # It is at its end once nobody has it open for writing,
        # in whatever namespace the command's processes are.
        os.mkfifo(it.work / "pipe")
        pipe = os.open(it.work / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        running = asyncio.create_task(run(it, "echo begun; (touch begun; sleep 77) > pipe"))
        await wait_until((it.work / "begun").exists)
        await wait_until(lambda: isinstance(it.calls()[-1].state, ToolStateRunning))
        assert await it.client.call(ABORT, SessionId(session_id=it.session_id)) is True
        done = state(await running)
        assert done.output.startswith("begun\n")
        assert "aborted" in done.output
        assert (done.metadata["exit"], done.metadata["interrupted"]) == (None, True)
        await wait_until(lambda: is_at_end(pipe))
        os.close(pipe)
        await it.prompt()
        check_turns(it.model.requests[-1].messages)


@pytest.mark.slow
async def test_a_running_turn_refuses_a_command_and_a_running_command_another(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(
        tmp_path,
        [
            make_answer(
                make_call("bash", command="touch begun; until [ -e go ]; do sleep 0.01; done")
            )
        ],
    ) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        await wait_until((it.work / "begun").exists)
        assert (await refused(run(it, "echo hi"))).kind == "SessionBusyError"
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        first = asyncio.create_task(run(it, "touch second; until [ -e go ]; do sleep 0.01; done"))
        await wait_until((it.work / "second").exists)
        assert (await refused(run(it, "echo hi"))).kind == "SessionBusyError"
        (it.work / "go").touch()
        assert state(await first).output == "(no output, exit code 0)"


async def test_a_prompt_sent_while_a_command_runs_is_answered_after_it(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        running = asyncio.create_task(
            run(it, "touch begun; until [ -e go ]; do sleep 0.01; done; echo over")
        )
        await wait_until((it.work / "begun").exists)
        asked = asyncio.create_task(
            it.client.call(
                PROMPT,
                Prompt(session_id=it.session_id, parts=[TextPartInput(text="what came of it?")]),
            )
        )
        await wait_until(lambda: len(it.view().entries) == 3)
        (it.work / "go").touch()
        assert join_texts((await asked).parts) == "Done."
        assert state(await running).output == "over\n"
        (request,) = it.model.requests
        check_turns(request.messages)
        assert list_texts(request.messages[2]) == ["over\n"]


async def test_undo_leaves_alone_what_a_command_did(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("write", filePath="agent.txt", content="a")), DONE]
    ) as it:
        await it.prompt()
        await run(it, "echo mine > own.txt")
        first = it.view().entries[0].info.id
        await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=first)
        )
        assert (it.work / "own.txt").read_text() == "mine\n"
        assert not (it.work / "agent.txt").exists()
        await run(it, "true")
        assert it.view().session.revert is None
        assert len(it.view().entries) == 2


async def test_a_session_is_named_after_the_first_prompt_and_not_after_a_command(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        await run(it, "echo hi")
        assert is_untitled(it.view().session.title)
        await it.prompt("Look at the tests")
        await wait_until(lambda: it.view().session.title == "Look at the tests")


async def test_what_can_not_be_run_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        for command in ("", "  \n", "echo a\0b"):
            assert (await refused(run(it, command))).kind == "BadRequest"
        assert (await refused(run(it, "true", agent="nobody"))).kind == "NotFoundError"
        assert (await refused(run(it, "true", message_id="x"))).kind == "BadRequest"
        assert it.view().entries == ()
        chosen = new_id("msg")
        await run(it, "true", message_id=chosen)
        assert it.view().entries[0].info.id == chosen
        assert (await refused(run(it, "true", message_id=chosen))).kind == "BadRequest"
        assert len(it.view().entries) == 2


@pytest.mark.slow
async def test_long_output_keeps_its_end_and_the_whole_in_a_file(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        done = state(await run(it, "seq 30000"))
        assert done.metadata["truncated"] is True
        assert done.output.rstrip().endswith("30000")
        assert len(done.output) < 60_000
        assert Path(done.metadata["outputPath"]).read_text().startswith("1\n2\n")
