"""Commands through the client: what the model is sent, what runs, what is refused."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.model.chat import ToolModelMessage, UserModelMessage
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.agents import COMMAND_LIST
from codeloop.schema.api.session_inputs import (
    ABORT,
    COMMAND,
    PROMPT,
    FilePartInput,
    InvokeCommand,
    MessageWithParts,
    Prompt,
    SubtaskPartInput,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import CommandExecuted
from codeloop.schema.message import AssistantMessage, ModelRef, UserMessage
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import FilePart, SubtaskPart, TextPart, ToolPart
from tests.extend.settings import write
from tests.support.scripted_project import (
    ScriptedProject,
    check_turns,
    open_scripted_project,
    wait_for_result,
    wait_until,
)

OK = ScriptedAnswer(text="ok")


async def run(it: ScriptedProject, name: str, arguments: str = "", **more: Any) -> MessageWithParts:
    """Run a command."""
    call = it.client.call(
        COMMAND, InvokeCommand(session_id=it.session_id, command=name, arguments=arguments, **more)
    )
    return await wait_for_result(call)


def said(it: ScriptedProject) -> list[str]:
    """Return the texts of the first prompt as the model read them."""
    turn = it.model.requests[0].messages[0]
    assert isinstance(turn, UserModelMessage)
    return [getattr(piece, "text", "") for piece in turn.content]


def commands(**own: str | dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of commands."""
    return {
        name: {"template": each} if isinstance(each, str) else each for name, each in own.items()
    }


async def test_the_list_holds_built_in_configured_and_skills(tmp_path: Path) -> None:
    write(
        tmp_path,
        "work/.claude/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads\n---\nUse it.",
    )
    write(
        tmp_path,
        "work/.claude/skills/init/SKILL.md",
        "---\nname: init\ndescription: Fake\n---\nNo.",
    )
    async with open_scripted_project(
        tmp_path, [OK], command=commands(hi={"template": "Hi $1 $ARGUMENTS", "agent": "plan"})
    ) as it:
        listed = await it.client.call(COMMAND_LIST, NoArguments())
        assert [each.name for each in listed] == ["hi", "init", "pdf", "remember", "review"]
        assert msgspec.to_builtins(listed[0]) == {
            "name": "hi", "template": "Hi $1 $ARGUMENTS", "hints": ["$1", "$ARGUMENTS"], "agent": "plan",
            "source": "command",
        }  # fmt: skip
        assert (listed[2].source, listed[2].template) == ("skill", "Use it.")
        assert "AGENTS.md" in listed[1].template


async def test_a_command_becomes_a_prompt_and_tells_when_it_is_over(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [OK], command=commands(hi="Greet $1, then $2")
    ) as it:
        heard: list[CommandExecuted] = []

        async def listen() -> None:
            async for stamped in it.client.follow():
                heard.extend([stamped.event] if isinstance(stamped.event, CommandExecuted) else [])

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0)
        answer = await run(it, "hi", '"Ann B" and others')
        await wait_until(lambda: heard)
        listening.cancel()
        assert said(it) == ["Greet Ann B, then and others"]
        assert isinstance(answer.info, AssistantMessage)
        (event,) = heard
        assert msgspec.to_builtins(event.properties) == {
            "name": "hi", "sessionID": it.session_id, "arguments": '"Ann B" and others', "messageID": answer.info.id,
        }  # fmt: skip


async def test_files_and_subagents_that_are_mentioned_come_along(tmp_path: Path) -> None:
    write(tmp_path, "work/notes.txt", "remember")
    template = "Look at @notes.txt, @missing.txt and ask @explore about @plan. $ARGUMENTS"
    async with open_scripted_project(tmp_path, [OK], command=commands(look=template)) as it:
        extra = FilePartInput(mime="text/plain", url="data:text/plain,extra", filename="extra.txt")
        await run(it, "look", "@work", parts=[extra])
        texts = "\n".join(said(it))
        assert "remember" in texts
        assert "extra" in texts
        assert "subagent explore" in texts
        files = [part.filename for part in it.view().entries[0].parts if isinstance(part, FilePart)]
        assert files == ["notes.txt", "extra.txt"]


async def test_shell_lines_run_with_leave_and_their_output_is_put_in(tmp_path: Path) -> None:
    template = "A !`printf one; exit 3` B !`cd / && pwd` C !`pwd`"
    async with open_scripted_project(
        tmp_path, [OK], command=commands(sh=template), permission={"external_directory": "allow"}
    ) as it:
        await run(it, "sh")
        (text,) = said(it)
        noted = "<shell_metadata>\nexit code 3\n</shell_metadata>"
        assert text == f"A one\n\n{noted} B / C {it.work}"


async def test_a_shell_line_is_asked_for_as_any_other(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "command": commands(sh="See !`touch made`"),
        "permission": {"bash": "ask"},
    }
    async with open_scripted_project(tmp_path, [OK], **settings) as it:
        running = asyncio.create_task(run(it, "sh"))
        request = await it.question()
        assert (request.permission, request.patterns) == ("bash", ["touch made"])
        assert not (it.work / "made").exists()
        await it.answer(request, "once")
        await wait_for_result(running)
        assert (it.work / "made").exists()


@pytest.mark.parametrize("reply", ["deny", "reject"])
async def test_a_refused_shell_line_sends_nothing(tmp_path: Path, reply: str) -> None:
    action = "deny" if reply == "deny" else "ask"
    settings: dict[str, Any] = {
        "command": commands(sh="!`touch one` !`rm -rf x`"),
        "permission": {"bash": {"rm *": action}},
    }
    async with open_scripted_project(tmp_path, [OK], **settings) as it:
        running = asyncio.create_task(run(it, "sh"))
        if reply == "reject":
            await it.answer(await it.question(), "reject")
        with pytest.raises(OperationError, match="/sh was not sent: its line `rm -rf x`"):
            await wait_for_result(running)
        assert not it.view().entries
        assert not it.model.requests


async def test_an_abort_ends_a_shell_line_and_sends_nothing(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [OK], command=commands(sh="!`touch begun; sleep 77`")
    ) as it:
        running = asyncio.create_task(run(it, "sh"))
        await wait_until((it.work / "begun").exists)
        await wait_for_result(it.client.call(ABORT, SessionId(session_id=it.session_id)))
        with pytest.raises(OperationError, match="Aborted before anything was sent"):
            await wait_for_result(running)
        assert not it.view().entries


async def test_agent_and_model_are_the_commands_own(tmp_path: Path) -> None:
    own = {"template": "Think.", "agent": "plan", "model": "other/one"}
    async with open_scripted_project(tmp_path, [OK], command=commands(think=own)) as it:
        await run(it, "think", agent="build", model="x/y")
        info = it.view().entries[0].info
        assert isinstance(info, UserMessage)
        assert (info.agent, info.model.provider_id, info.model.model_id) == ("plan", "other", "one")


async def test_a_subtask_goes_to_the_subagent_before_the_model_is_asked(tmp_path: Path) -> None:
    own = {"template": "Find $1.", "description": "Find it", "agent": "explore", "subtask": True}
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="It is in a.py."), OK], command=commands(find=own)
    ) as it:
        await run(it, "find", "x")
        prompt, task, answer = it.view().entries
        (work,) = prompt.parts
        assert isinstance(work, SubtaskPart)
        assert (work.prompt, work.agent, work.command) == ("Find x.", "explore", "find")
        assert isinstance(task.info, AssistantMessage)
        assert (task.info.mode, task.info.finish) == ("explore", "tool-calls")
        (part,) = [part for part in task.parts if isinstance(part, ToolPart)]
        assert part.tool == "task"
        assert "It is in a.py." in it.results()[0]
        assert [part.text for part in answer.parts if isinstance(part, TextPart)] == ["ok"]
        child, last = it.model.requests
        assert child.session_id != it.session_id
        assert isinstance(last.messages[-1], ToolModelMessage)
        check_turns(last.messages)


async def test_several_subtasks_of_prompts_run_side_by_side(tmp_path: Path) -> None:
    def part(prompt: str) -> SubtaskPartInput:
        return SubtaskPartInput(prompt=prompt, description=prompt, agent="explore")

    async with open_scripted_project(
        tmp_path,
        [
            ScriptedAnswer(text="found"),
            ScriptedAnswer(text="found"),
            ScriptedAnswer(text="found"),
            OK,
        ],
    ) as it:
        await it.client.call(
            PROMPT, Prompt(session_id=it.session_id, parts=[part("a"), part("b")], no_reply=True)
        )
        await wait_for_result(
            it.client.call(PROMPT, Prompt(session_id=it.session_id, parts=[part("c")]))
        )
        assert sorted(call.state.input["prompt"] for call in it.calls()) == ["a", "b", "c"]
        assert all("found" in result for result in it.results())
        check_turns(it.model.requests[-1].messages)


async def test_a_subtask_runs_with_the_model_that_it_names(tmp_path: Path) -> None:
    other = ModelRef(provider_id="p", model_id="other")
    parts = [
        SubtaskPartInput(prompt="a", description="a", agent="explore", model=other),
        SubtaskPartInput(prompt="b", description="b", agent="explore"),
    ]
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="found"), ScriptedAnswer(text="found"), OK]
    ) as it:
        await wait_for_result(it.client.call(PROMPT, Prompt(session_id=it.session_id, parts=parts)))
        first, second = sorted(
            it.project.store.list_sessions(parent=it.session_id), key=lambda one: one.title
        )
        assert first.model is not None
        assert second.model is not None
        assert (first.model.id, second.model.id) == ("other", "script")


async def test_an_unknown_subagent_is_a_result_that_the_model_reads(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [OK]) as it:
        work = SubtaskPartInput(prompt="x", description="x", agent="nobody")
        await wait_for_result(
            it.client.call(PROMPT, Prompt(session_id=it.session_id, parts=[work]))
        )
        assert "There is no subagent named nobody" in it.results()[0]
        check_turns(it.model.requests[-1].messages)


async def test_an_abort_ends_a_subtask_which_is_never_run_again(tmp_path: Path) -> None:
    own = {"template": "Find.", "agent": "explore"}
    slow = ScriptedAnswer(text="late", delay_ms=100_000)
    async with open_scripted_project(tmp_path, [slow, OK], command=commands(find=own)) as it:
        running = asyncio.create_task(run(it, "find"))
        await wait_until(lambda: it.model.requests)
        await wait_for_result(it.client.call(ABORT, SessionId(session_id=it.session_id)))
        await wait_for_result(running)
        assert "Interrupted" in it.results()[0]
        await it.prompt("go on")
        assert len(it.calls()) == 1
        check_turns(it.model.requests[-1].messages)


async def test_a_skill_is_a_command(tmp_path: Path) -> None:
    write(
        tmp_path,
        "work/.claude/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads\n---\nUse !`touch x` $1 @a.",
    )
    async with open_scripted_project(tmp_path, [OK]) as it:
        await run(it, "pdf", "on a.pdf")
        (text,) = said(it)
        assert text.startswith('<skill_content name="pdf">\nUse !`touch x` $1 @a.')
        assert text.endswith("on a.pdf")
        assert not (it.work / "x").exists()


async def test_a_command_that_is_carried_out_is_listed_only_when_it_is_the_users_own(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(
        tmp_path, [OK], command=commands(compact="Make it short: $ARGUMENTS")
    ) as it:
        listed = await it.client.call(COMMAND_LIST, NoArguments())
        assert [each.name for each in listed] == ["compact", "init", "remember", "review"]


async def test_what_there_is_not_is_refused_with_what_there_is(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [OK], command=commands(many="!`true`" * 21, gone={"template": "x", "agent": "no"})
    ) as it:
        with pytest.raises(
            OperationError,
            match=r"Command not found: nope\. Available: compact, gone, init, many, remember, review",
        ):
            await run(it, "nope")
        with pytest.raises(OperationError, match="21 shell lines"):
            await run(it, "many")
        with pytest.raises(OperationError, match="Agent not found: no"):
            await run(it, "gone")
        assert not it.view().entries


async def test_compact_summarises(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [OK, ScriptedAnswer(text="What was said.", kind="side")]
    ) as it:
        await it.prompt("hello")
        answer = await run(it, "compact")
        assert isinstance(answer.info, AssistantMessage)
        assert answer.info.summary is True
