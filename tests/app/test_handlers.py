"""What a client may ask for: sessions, prompts, questions; and how a bad request is refused."""

import asyncio
import base64
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

import msgspec
import pytest

from codeloop.app.app import App
from codeloop.app.dispatch import load_handler
from codeloop.client.local import LocalClient
from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.schema.api.answers import (
    PERMISSION_LIST,
    PERMISSION_REPLY,
    PERMISSION_RULES,
    AnswerPermission,
)
from codeloop.schema.api.session_inputs import (
    ABORT,
    PROMPT,
    PROMPT_ASYNC,
    AgentPartInput,
    FilePartInput,
    Prompt,
    TextPartInput,
)
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_DELETE,
    SESSION_FORK,
    SESSION_GET,
    SESSION_LIST,
    CreateSession,
    ForkSession,
    ListSessions,
    SessionId,
)
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, ModelRef, UserMessage
from codeloop.schema.operation import AnyOperation, Constant, NoArguments, Unsupported
from codeloop.schema.operation_table import OPERATIONS, SERVER_OPERATIONS
from codeloop.schema.part import AgentPart, FilePart, TextPart
from codeloop.schema.permission import PermissionQuery
from tests.support.scripted_project import (
    LOCAL_CLIENT_ONLY,
    both_clients,
    join_texts,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)

__all__ = ["both_clients"]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
DONE = ScriptedAnswer(text="Done.", tokens=TokenCount(input=5))


async def refused(wait: Any) -> OperationError:
    with pytest.raises(OperationError) as raised:
        await wait
    return raised.value


@LOCAL_CLIENT_ONLY
@pytest.mark.parametrize(
    "operation", [*OPERATIONS, *SERVER_OPERATIONS], ids=lambda operation: operation.id
)
def test_a_handler_takes_and_gives_what_its_operation_says(operation: AnyOperation) -> None:
    match operation.handler:
        case Unsupported(text=text):
            assert text.endswith(".")
            return
        case Constant(value=value):
            assert msgspec.convert(msgspec.to_builtins(value), operation.gives) == value
            return
        case _:
            handler = load_handler(operation)
    assert iscoroutinefunction(handler), "it is awaited"
    hints = get_type_hints(handler, include_extras=True)
    gives = hints.pop("return")
    *places, takes = hints.values()
    assert places[:1] == [App] if operation.scope == "process" else len(places) == 1
    assert takes == operation.takes
    assert gives in {operation.gives, NoReturn}


async def test_a_session_is_made_listed_read_and_deleted(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        made = await it.client.call(
            SESSION_CREATE, CreateSession(title="mine", agent="build", metadata={"a": 1})
        )
        assert (made.title, made.agent, made.metadata, made.cost) == (
            "mine",
            "build",
            {"a": 1},
            0.0,
        )
        assert made.directory == str(it.work)
        assert made.id.startswith("ses_")
        assert len(made.slug.split("-")) == 2
        assert await it.client.call(SESSION_GET, SessionId(session_id=made.id)) == made
        listed = await it.client.call(SESSION_LIST, ListSessions(directory=str(it.work)))
        assert {one.id for one in listed} == {made.id, it.session_id}
        assert (
            await LocalClient(it.project).call(SESSION_LIST, ListSessions(directory="/elsewhere"))
            == []
        )
        assert await it.client.call(SESSION_DELETE, SessionId(session_id=made.id)) is True
        assert (
            await refused(it.client.call(SESSION_GET, SessionId(session_id=made.id)))
        ).kind == "NotFoundError"


async def test_deleting_a_session_deletes_its_children(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        child = await it.client.call(SESSION_CREATE, CreateSession(parent_id=it.session_id))
        grandchild = await it.client.call(SESSION_CREATE, CreateSession(parent_id=child.id))
        other = await it.client.call(SESSION_CREATE, CreateSession())
        await it.client.call(SESSION_DELETE, SessionId(session_id=it.session_id))
        assert [one.id for one in it.project.store.list_sessions()] == [other.id]
        assert it.project.store.find_session(grandchild.id) is None


async def test_a_busy_session_is_not_deleted(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="touch begun; sleep 77"))]
    ) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        await wait_until((it.work / "begun").exists)
        assert (
            await refused(it.client.call(SESSION_DELETE, SessionId(session_id=it.session_id)))
        ).kind == "SessionBusyError"
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        assert await it.client.call(SESSION_DELETE, SessionId(session_id=it.session_id)) is True


async def test_a_prompt_is_stored_before_anything_else_and_may_ask_for_no_answer(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        chosen = new_id("msg")
        stored = await it.prompt("remember this", no_reply=True, message_id=chosen)
        assert isinstance(stored.info, UserMessage)
        assert (stored.info.id, join_texts(stored.parts)) == (chosen, "remember this")
        assert it.model.requests == []
        messages = await it.client.call(SESSION_MESSAGES, ListMessages(session_id=it.session_id))
        assert [message.info for message in messages] == [stored.info]


async def test_the_turn_goes_on_when_the_caller_goes_away(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Done.", deltas=5, delay_ms=10)]
    ) as it:
        caller = asyncio.create_task(it.prompt())
        await wait_until(lambda: len(it.view().entries) == 2)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        await wait_until(lambda: not it.project.runs.is_running(it.session_id))
        assert join_texts(it.view().entries[1].parts) == "Done."


async def test_two_callers_of_one_turn_get_the_same_answer(tmp_path: Path) -> None:
    made = make_answer(make_call("bash", command="until [ -e go ]; do sleep 0.01; done"))
    async with open_scripted_project(tmp_path, [made, DONE]) as it:
        first = asyncio.create_task(it.prompt("one"))
        await wait_until(lambda: it.calls() and it.calls()[0].state.input)
        second = asyncio.create_task(it.prompt("two"))
        await wait_until(lambda: len(it.view().entries) == 3)
        (it.work / "go").touch()
        assert (await first).info == (await second).info
        assert len(it.model.requests) == 2


async def test_a_prompts_tools_become_rules_of_the_session_and_stay(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE, DONE]) as it:
        await it.prompt(tools={"bash": False})
        await it.prompt("again")
        for request in it.model.requests:
            assert "bash" not in [spec.name for spec in request.tools]


async def test_model_and_agent_are_remembered_for_the_next_prompt(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [DONE, DONE], agent={"mine": {"prompt": "You are mine."}}
    ) as it:
        model = ModelRef(provider_id="p", model_id="x/y")
        await it.prompt(agent="mine", model=model)
        answer = await it.prompt("again")
        assert isinstance(answer.info, AssistantMessage)
        assert (answer.info.agent, answer.info.model_id) == ("mine", "x/y")
        assert it.model.requests[1].system.startswith("You are mine.")


async def test_what_a_prompt_brings_along_becomes_parts(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        (it.work / "a b.txt").write_text("inside\n")
        (it.work / "p.png").write_bytes(base64.b64decode(PNG))
        given = [
            TextPartInput(text="look"),
            FilePartInput(mime="text/plain", url=(it.work / "a b.txt").as_uri()),
            FilePartInput(mime="image/png", url=(it.work / "p.png").as_uri()),
            AgentPartInput(name="general"),
        ]
        await it.client.call(PROMPT, Prompt(session_id=it.session_id, parts=given))
        parts = it.view().entries[0].parts
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        assert texts[0] == "look"
        assert any("inside" in text for text in texts[1:])
        assert all(part.synthetic for part in parts[1:] if isinstance(part, TextPart))
        named, picture = [part for part in parts if isinstance(part, FilePart)]
        assert named.url == (it.work / "a b.txt").as_uri()
        assert picture.filename == "p.png"
        assert picture.url.startswith("data:image/png;base64,iVBORw0")
        assert [part.name for part in parts if isinstance(part, AgentPart)] == ["general"]


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"message_id": "abc"}, "BadRequest"),
        ({"agent": "nobody"}, "NotFoundError"),
        ({"session_id": "ses_none"}, "NotFoundError"),
        ({"parts": [FilePartInput(mime="text/plain", url="file:///no/such/file")]}, "BadRequest"),
        ({"parts": [FilePartInput(mime="text/plain", url="file:///proc/self/exe")]}, "BadRequest"),
    ],
)
async def test_a_bad_prompt_is_refused_and_stores_nothing(
    tmp_path: Path, args: dict[str, Any], kind: str
) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        given: dict[str, Any] = {
            "session_id": it.session_id,
            "parts": [TextPartInput(text="x")],
            **args,
        }
        assert (await refused(it.client.call(PROMPT, Prompt(**given)))).kind == kind
        assert it.view().entries == ()
        assert join_texts((await it.prompt()).parts) == "Done."


async def test_a_session_of_an_unknown_parent_or_agent_is_refused(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        assert (
            await refused(it.client.call(SESSION_CREATE, CreateSession(parent_id="ses_x")))
        ).kind == "NotFoundError"
        assert (
            await refused(it.client.call(SESSION_CREATE, CreateSession(agent="x")))
        ).kind == "NotFoundError"


@pytest.mark.slow
async def test_questions_are_listed_and_answered_once(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="echo")), DONE], permission={"bash": "ask"}
    ) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        request = await it.question()
        assert await it.client.call(PERMISSION_LIST, NoArguments()) == [request]
        assert (
            await it.client.call(
                PERMISSION_REPLY, AnswerPermission(request_id=request.id, reply="once")
            )
            is True
        )
        again = await refused(
            it.client.call(PERMISSION_REPLY, AnswerPermission(request_id=request.id, reply="once"))
        )
        assert again.kind == "PermissionNotFoundError"
        await wait_until(lambda: not it.project.runs.is_running(it.session_id))


@pytest.mark.slow
async def test_an_edited_always_is_never_wider_than_what_was_offered_without_it_being_seen(
    tmp_path: Path,
) -> None:
    script = [
        make_answer(make_call("bash", command="touch a b"), make_call("bash", command="touch c")),
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, permission={"bash": "ask"}) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        request = await it.question()
        assert request.always == ["touch *"]

        def answer(*always: str, wider: bool = False) -> AnswerPermission:
            return AnswerPermission(
                request_id=request.id, reply="always", always=list(always), wider=wider
            )

        for wrong in (
            answer("t*"),
            answer("touch *", "*"),
            answer(),
            answer(" "),
            answer("<read-only>", wider=True),
        ):
            assert (await refused(it.client.call(PERMISSION_REPLY, wrong))).kind == "BadRequest"
        assert it.project.store.permissions.list_all_grants() == []
        assert await it.client.call(PERMISSION_REPLY, answer("touch c*"))
        assert [grant.patterns for grant in it.project.store.permissions.list_all_grants()] == [
            ["touch c*"]
        ]
        await wait_until(lambda: not it.project.runs.is_running(it.session_id))
        assert (it.work / "c").exists(), "what was remembered answers the other question too"


async def test_an_answer_for_the_session_is_listed_and_a_fork_does_not_inherit_it(
    tmp_path: Path,
) -> None:
    script = [make_answer(make_call("bash", command="touch a")), DONE]
    async with open_scripted_project(tmp_path, script, permission={"bash": "ask"}) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        request = await it.question()
        for_session = AnswerPermission(
            request_id=request.id, reply="always", scope="session", always=["touch a*"]
        )
        assert await it.client.call(PERMISSION_REPLY, for_session)
        await wait_until(lambda: not it.project.runs.is_running(it.session_id))
        copy = await it.client.call(SESSION_FORK, ForkSession(session_id=it.session_id))
        found = await it.client.call(PERMISSION_RULES, PermissionQuery(session_id=copy.id))
        assert [(each.session_id, each.directory, each.patterns) for each in found.grants] == [
            (it.session_id, "", ["touch a*"])
        ]
        for session_id, counts in ((it.session_id, 1), (copy.id, 0)):
            assert len(it.project.store.permissions.list_session_grants(session_id)) == counts


async def test_a_project_that_can_not_store_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "data").write_text("in the way")
    with pytest.raises(CodeloopError, match="can't be written"):
        async with open_scripted_project(tmp_path, []):
            pass
