"""Hooks of requests, prompts, answers, summaries and the end of a turn."""

from pathlib import Path
from typing import Any

import pytest

from codeloop.model.chat import ModelInfo, TextPiece, TokenLimits, UserModelMessage
from codeloop.model.protocols.anthropic.adapter import AnthropicMessages
from codeloop.model.protocols.chat_completions.adapter import ChatCompletionsModel
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall, TokenCount
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wrappers.retrying_model import RetryingModel
from codeloop.schema.api.pty import PTY_CREATE, CreatePty
from codeloop.schema.api.session_inputs import (
    COMMAND,
    SESSION_SHELL,
    SUMMARIZE,
    InvokeCommand,
    RunShell,
    Summarize,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import ToolPart
from codeloop.schema.wire import JSON
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.recording_handler import RecordingHandler, change_nothing, open_hooked_project
from tests.support.scripted_project import (
    join_texts,
    list_texts,
    make_answer,
    make_call,
    read_result,
    wait_until,
)

MESSAGES, SYSTEM = "experimental.chat.messages.transform", "experimental.chat.system.transform"
COMPACTING, GOES_ON = "experimental.session.compacting", "experimental.compaction.autocontinue"
DONE = ScriptedAnswer(text="Done.")
SMALL = ModelInfo(
    provider_id="scripted",
    id="small",
    name="Small",
    limits=TokenLimits(context=10_000, output=1_000),
)
FULL = ScriptedAnswer(
    calls=(ScriptedCall("glob", {"pattern": "*"}),), tokens=TokenCount(input=9_000, output=10)
)
NOTE = ScriptedAnswer(kind="side", text="NOTE")


def said(turns: Any) -> str:
    return "\n".join(text for turn in turns for text in list_texts(turn))


async def test_parameters_system_prompt_and_conversation_are_what_extensions_leave(
    tmp_path: Path,
) -> None:
    def params(_given: JSON, output: JSON) -> JSON:
        return {
            "temperature": 0.5,
            "topP": 0.25,
            "topK": 7,
            "maxOutputTokens": 99,
            "options": {"seed": 1},
        }

    def messages(_given: JSON, output: JSON) -> JSON:
        output["messages"][0]["parts"][0]["text"] = "another prompt"
        return output

    answers = {
        "chat.params": params,
        SYSTEM: lambda _given, output: {"system": [*output["system"], "Speak Latin."]},
        MESSAGES: messages,
        "chat.headers": lambda _given, _output: {"headers": {"X-Team": "blue"}},
    }
    handler = RecordingHandler(answers)
    async with open_hooked_project(tmp_path, [DONE], handler) as it:
        await it.prompt("the prompt")
        (request,) = it.model.requests
        assert (request.temperature, request.top_p, request.max_tokens) == (0.5, 0.25, 99)
        assert request.options["seed"] == 1
        assert request.options["top_k"] == 7
        assert request.system.endswith("Speak Latin.")
        assert said(request.messages) == "another prompt"
        assert request.headers == {"X-Team": "blue"}
        assert join_texts(it.view().entries[0].parts) == "the prompt"
        assert handler.given("chat.params")[0]["model"]["id"] == it.model.info.id


async def test_a_part_that_an_extension_adds_to_the_conversation_needs_no_ids(
    tmp_path: Path,
) -> None:
    def add(_given: JSON, output: JSON) -> JSON:
        output["messages"][-1]["parts"].append({"type": "text", "text": "a reminder"})
        return output

    async with open_hooked_project(tmp_path, [DONE], RecordingHandler({MESSAGES: add})) as it:
        await it.prompt("the prompt")
        assert said(it.model.requests[0].messages) == "the prompt\na reminder"


@pytest.mark.parametrize("kind", [ChatCompletionsModel, AnthropicMessages])
async def test_headers_reach_the_service_at_each_try_and_frame_no_request(
    tmp_path: Path, kind: Any
) -> None:
    headers = {"X-Trace": "1", "Host": "evil.example", "Content-Length": "3"}
    handler = RecordingHandler({"chat.headers": lambda _given, _output: {"headers": headers}})
    async with ModelServer(
        [Answer(status=503, body="{}", headers={"retry-after-ms": "1"}), Answer(text="Hi.")]
    ) as server:
        model = RetryingModel(kind(SMALL, Endpoint(server.url, "k")))
        async with open_hooked_project(tmp_path, model, handler) as it:
            await it.prompt()
    assert len(server.requests) == 2
    assert all(each.headers["x-trace"] == "1" for each in server.requests)
    assert all("evil" not in each.headers["host"] for each in server.requests)
    assert handler.counts == {"chat.headers": 1}


@pytest.mark.parametrize("headers", [{"X-A": "b\r\nX-C: d"}, {"X A": "b"}, {"X-A": 1}])
async def test_headers_that_are_none_are_passed_over(tmp_path: Path, headers: JSON) -> None:
    handler = RecordingHandler({"chat.headers": lambda _given, _output: {"headers": headers}})
    async with open_hooked_project(tmp_path, [DONE], handler) as it:
        await it.prompt()
        assert it.model.requests[0].headers == {}


async def test_tools_are_described_once_and_the_same_in_each_request(tmp_path: Path) -> None:
    count = 0

    def describe(given: JSON, output: JSON) -> JSON:
        nonlocal count
        count += 1
        return (
            {"description": f"{output['description']} ({count})"}
            if given["toolID"] == "glob"
            else output
        )

    handler = RecordingHandler({"tool.definition": describe})
    async with open_hooked_project(
        tmp_path, [make_answer(make_call("glob", pattern="*")), DONE, DONE], handler
    ) as it:
        await it.prompt()
        await it.prompt("again")
        first, *others = [request.tools for request in it.model.requests]
        assert all(tools == first for tools in others)
        assert next(tool for tool in first if tool.name == "glob").description.endswith(")")
        assert handler.counts["tool.definition"] == len(first)


async def test_a_prompt_is_changed_or_refused_before_it_is_stored(tmp_path: Path) -> None:
    def change(given: JSON, output: JSON) -> JSON:
        if "forbidden" in output["parts"][0]["text"]:
            raise ValueError("not here")
        return {
            "parts": [*output["parts"], {"type": "text", "text": "and be brief", "synthetic": True}]
        }

    handler = RecordingHandler({"chat.message": change})
    task = make_call("task", description="d", prompt="for the child", subagent_type="general")
    async with open_hooked_project(tmp_path, [DONE, make_answer(task), DONE, DONE], handler) as it:
        await it.prompt("hello")
        assert said(it.model.requests[0].messages) == "hello\nand be brief"
        with pytest.raises(OperationError, match="not here"):
            await it.prompt("forbidden")
        assert len(it.view().entries) == 2
        await it.prompt("use a subagent")
        assert said(it.model.requests[2].messages) == "for the child\nand be brief"
        assert [given["parentID"] for given in handler.given("chat.message")] == [
            None,
            None,
            None,
            it.session_id,
        ]


async def test_a_command_is_changed_or_refused(tmp_path: Path) -> None:
    def change(given: JSON, output: JSON) -> JSON:
        if given["arguments"] == "no":
            raise ValueError("not here")
        return {"parts": [{"type": "text", "text": f"{given['command']} {given['arguments']}"}]}

    handler = RecordingHandler({"command.execute.before": change})
    commands = {"go": {"template": "Go $ARGUMENTS"}}
    async with open_hooked_project(tmp_path, [DONE], handler, command=commands) as it:
        await it.client.call(
            COMMAND, InvokeCommand(session_id=it.session_id, command="go", arguments="far")
        )
        assert said(it.model.requests[0].messages) == "go far"
        with pytest.raises(OperationError, match="not here"):
            await it.client.call(
                COMMAND, InvokeCommand(session_id=it.session_id, command="go", arguments="no")
            )


async def test_a_session_that_an_extension_does_not_let_begin_is_asked_about_again(
    tmp_path: Path,
) -> None:
    refusals = ["no ticket"]

    def begin(_given: JSON, output: JSON) -> JSON:
        if refusals:
            raise ValueError(refusals.pop())
        return {**output, "context": ["Ticket 7."]}

    handler = RecordingHandler({"session.start": begin}, policy=frozenset(("session.start",)))
    async with open_hooked_project(tmp_path, [DONE], handler) as it:
        with pytest.raises(OperationError, match=r"The prompt was not sent\. .*no ticket"):
            await it.prompt()
        await it.prompt()
        assert "Ticket 7." in said(it.model.requests[0].messages)


async def test_an_answer_is_stored_as_extensions_leave_it(tmp_path: Path) -> None:
    handler = RecordingHandler(
        {"experimental.text.complete": lambda _given, output: {"text": output["text"].upper()}}
    )
    async with open_hooked_project(tmp_path, [DONE], handler) as it:
        answer = await it.prompt()
        assert join_texts(answer.parts) == "DONE."


async def test_a_summary_is_asked_for_as_extensions_say_and_need_not_go_on(tmp_path: Path) -> None:
    answers = {
        COMPACTING: lambda _given, _output: {"context": ["Keep the branch's name."]},
        GOES_ON: lambda _given, _output: {"enabled": False},
    }
    handler = RecordingHandler(answers)
    async with open_hooked_project(tmp_path, [FULL, NOTE], handler, info=SMALL) as it:
        await it.prompt()
        assert "Keep the branch's name." in said(it.model.requests[-1].messages)
        assert handler.counts == {COMPACTING: 1, GOES_ON: 1}
        last = it.view().entries[-1].info
        assert isinstance(last, AssistantMessage)
        assert last.summary


async def test_a_prompt_for_a_summary_takes_the_place_of_ours(tmp_path: Path) -> None:
    handler = RecordingHandler(
        {COMPACTING: lambda _given, _output: {"prompt": "In one word."}, GOES_ON: change_nothing}
    )
    async with open_hooked_project(tmp_path, [FULL, NOTE, DONE], handler, info=SMALL) as it:
        await it.prompt()
        last = it.model.requests[1].messages[-1]
        assert isinstance(last, UserModelMessage)
        assert last.content == (TextPiece("In one word."),)
        assert len(it.model.requests) == 3


async def test_a_model_is_sent_on_a_few_times_at_most(tmp_path: Path) -> None:
    handler = RecordingHandler(
        {"session.stop": lambda _given, _output: {"continue": "There is more."}}
    )
    async with open_hooked_project(tmp_path, [DONE] * 20, handler) as it:
        done = await it.prompt()
        assert done.stop is not None
        assert done.stop.reason == "done"
        assert len(it.model.requests) == 6
        assert [given["active"] for given in handler.given("session.stop")] == [False, *[True] * 5]
        prompts = [each for each in it.view().entries if isinstance(each.info, UserMessage)]
        assert [join_texts(each.parts) for each in prompts[1:]] == ["There is more."] * 5


async def test_no_turn_ends_with_a_command_of_the_persons_or_a_summary(tmp_path: Path) -> None:
    handler = RecordingHandler({"session.stop": change_nothing})
    async with open_hooked_project(tmp_path, [DONE, NOTE], handler) as it:
        await it.client.call(
            SESSION_SHELL, RunShell(session_id=it.session_id, command="true", agent="build")
        )
        assert handler.counts == {}
        await it.prompt()
        assert handler.counts == {"session.stop": 1}
        wanted = Summarize(session_id=it.session_id, provider_id="scripted", model_id="script")
        await it.client.call(SUMMARIZE, wanted)
        assert handler.counts == {"session.stop": 1}


async def test_a_persons_own_commands_and_terminals_have_the_variables_of_extensions(
    tmp_path: Path,
) -> None:
    handler = RecordingHandler({"shell.env": lambda _given, _output: {"env": {"TEAM": "blue"}}})
    async with open_hooked_project(tmp_path, [DONE], handler) as it:
        answer = await it.client.call(
            SESSION_SHELL, RunShell(session_id=it.session_id, command="echo $TEAM", agent="build")
        )
        (part,) = answer.parts
        assert isinstance(part, ToolPart)
        assert read_result(part) == "blue\n"
        await it.client.call(
            PTY_CREATE, CreatePty(command="/bin/sh", args=["-c", "echo $TEAM > team"])
        )
        await wait_until(
            lambda: (it.work / "team").exists() and (it.work / "team").read_text() == "blue\n"
        )


async def test_a_policy_that_fails_ends_the_turn_with_the_reason(tmp_path: Path) -> None:
    def fail(_given: JSON, _output: JSON) -> JSON:
        raise ValueError("no idea")

    handler = RecordingHandler({"chat.params": fail}, policy=frozenset(("chat.params",)))
    async with open_hooked_project(tmp_path, [DONE], handler) as it:
        done = await it.prompt()
        assert done.stop is not None
        assert done.stop.reason == "error"
        assert "decides about chat.params, and could not" in done.stop.message
        assert it.model.requests == []


async def test_what_extensions_hide_is_in_no_request(tmp_path: Path) -> None:
    def hide(_given: JSON, output: JSON) -> JSON:
        for message in output["messages"]:
            for part in message["parts"]:
                if "text" in part:
                    part["text"] = part["text"].replace("SECRET", "(hidden)")
        return output

    title = ScriptedAnswer(kind="side", text="A title")
    named = {"title": {"model": "scripted/script"}}
    async with open_hooked_project(
        tmp_path, [DONE, title, NOTE], RecordingHandler({MESSAGES: hide}), agent=named
    ) as it:
        await it.prompt("the key is SECRET")
        await wait_until(lambda: it.project.store.get_session(it.session_id).title == "A title")
        wanted = Summarize(session_id=it.session_id, provider_id="scripted", model_id="script")
        await it.client.call(SUMMARIZE, wanted)
        texts = [said(request.messages) for request in it.model.requests]
    assert len(texts) == 3
    assert all("(hidden)" in text and "SECRET" not in text for text in texts)
