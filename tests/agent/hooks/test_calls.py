"""Hooks of calls: what they change is what is asked about and done, and nothing passes by them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.hooks.hooks import Hooks
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import COMMAND, InvokeCommand
from codeloop.schema.errors import OperationError
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON, replace
from tests.support.recording_handler import (
    HookFunction,
    RecordingHandler,
    change_nothing,
    open_hooked_project,
)
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

BEFORE, AFTER, ASK = "tool.execute.before", "tool.execute.after", "permission.ask"
DONE = ScriptedAnswer(text="Done.")
ASKS: dict[str, Any] = {"permission": {"bash": "ask"}, "profile": "ask"}


def status(value: str) -> HookFunction:
    return lambda _given, _output: {"status": value}


def refusing(_given: JSON, _output: JSON) -> JSON:
    raise ValueError("not while I look")


async def test_changed_arguments_are_read_judged_stored_and_done(tmp_path: Path) -> None:
    def change(_given: JSON, output: JSON) -> JSON:
        return {"args": {**output["args"], "command": "echo changed > b"}}

    handler = RecordingHandler({BEFORE: change, AFTER: change_nothing})
    rules = {"permission": {"bash": {"*": "deny", "echo changed*": "allow"}, "edit": "allow"}}
    async with open_hooked_project(
        tmp_path, [make_answer(make_call("bash", command="touch a")), DONE], handler, **rules
    ) as it:
        await it.prompt()
        assert (it.work / "b").read_text() == "changed\n"
        assert not (it.work / "a").exists()
        (part,) = it.calls()
        assert part.state.input["command"] == "echo changed > b"
        assert handler.given(AFTER)[0]["args"]["command"] == "echo changed > b"


async def test_a_change_does_not_lead_past_the_gate(tmp_path: Path) -> None:
    handler = RecordingHandler(
        {BEFORE: lambda _given, _output: {"args": {"command": "touch denied"}}}
    )
    rules = {"permission": {"bash": {"*": "allow", "touch denied": "deny"}}}
    async with open_hooked_project(
        tmp_path, [make_answer(make_call("bash", command="true")), DONE], handler, **rules
    ) as it:
        await it.prompt()
        assert "Permission denied" in it.results()[0]
        assert not (it.work / "denied").exists()


async def test_changed_arguments_that_make_no_sense_are_told(tmp_path: Path) -> None:
    handler = RecordingHandler(
        {BEFORE: lambda _given, _output: {"args": {"command": {"no": "text"}}}}
    )
    async with open_hooked_project(
        tmp_path, [make_answer(make_call("bash", command="touch a")), DONE], handler
    ) as it:
        await it.prompt()
        assert "an extension changed the arguments" in it.results()[0]
        assert not (it.work / "a").exists()


@pytest.mark.parametrize("name", [BEFORE, ASK])
async def test_a_refusal_is_the_result_and_the_turn_goes_on(tmp_path: Path, name: str) -> None:
    handler = RecordingHandler({name: refusing})
    async with open_hooked_project(
        tmp_path, [make_answer(make_call("bash", command="touch a")), DONE], handler, **ASKS
    ) as it:
        done = await it.prompt()
        assert it.results()[0].startswith("Refused by the extension under test: not while I look")
        assert not (it.work / "a").exists()
        assert done.stop is not None
        assert done.stop.reason == "done"


async def test_a_result_is_what_extensions_leave(tmp_path: Path) -> None:
    handler = RecordingHandler(
        {AFTER: lambda _given, output: {"title": "T", "output": output["output"].upper()}}
    )
    async with open_hooked_project(
        tmp_path, [make_answer(make_call("bash", command="echo low")), DONE], handler
    ) as it:
        await it.prompt()
        assert it.results() == ["LOW\n"]


async def test_a_policy_that_fails_after_a_call_keeps_its_result_back(tmp_path: Path) -> None:
    handler = RecordingHandler({AFTER: refusing}, policy=frozenset((AFTER,)))
    async with open_hooked_project(
        tmp_path, [make_answer(make_call("bash", command="echo secret")), DONE], handler
    ) as it:
        await it.prompt()
        assert "its result is withheld" in it.results()[0]
        assert "secret" not in it.results()[0]


async def test_an_extension_answers_what_a_person_would_be_asked(tmp_path: Path) -> None:
    handler = RecordingHandler(
        {ASK: lambda given, _: {"status": "allow" if "one" in str(given["patterns"]) else "deny"}}
    )
    script = [
        make_answer(make_call("bash", command="touch one")),
        make_answer(make_call("bash", command="touch two")),
        DONE,
    ]
    async with open_hooked_project(tmp_path, script, handler, **ASKS) as it:
        await it.prompt()
        assert (it.work / "one").exists()
        assert not (it.work / "two").exists()
        assert "An extension denied this: bash touch two" in it.results()[1]
        by = {
            each.patterns[0]: (each.action, each.by)
            for each in it.project.store.permissions.list_decisions()
        }
        assert by["touch one"] == ("allow", "extension")
        assert by["touch two"] == ("deny", "extension")


async def test_a_line_of_a_command_that_an_extension_refuses_is_not_run(tmp_path: Path) -> None:
    commands = {"go": {"template": "It says !`touch a`"}}
    async with open_hooked_project(
        tmp_path, [DONE], RecordingHandler({ASK: refusing}), command=commands, **ASKS
    ) as it:
        with pytest.raises(
            OperationError, match=r"is denied\. Refused by the extension under test"
        ):
            await it.client.call(COMMAND, InvokeCommand(session_id=it.session_id, command="go"))
        assert not (it.work / "a").exists()


async def test_an_extension_lifts_no_denial_of_a_rule_an_agent_or_a_parent(tmp_path: Path) -> None:
    handler = RecordingHandler(
        {ASK: status("allow"), BEFORE: lambda _given, _output: {"permission": "allow"}}
    )
    task = make_call("task", description="d", prompt="p", subagent_type="explore")
    script = [
        make_answer(make_call("bash", command="touch no")),
        make_answer(task),
        make_answer(make_call("bash", command="touch child")),
        DONE,
        DONE,
    ]
    rules = {"permission": {"bash": {"*": "ask", "touch no": "deny"}}, "profile": "ask"}
    async with open_hooked_project(tmp_path, script, handler, **rules) as it:
        await it.prompt()
        assert not (it.work / "no").exists()
        assert not (it.work / "child").exists()
        assert handler.given(BEFORE)


async def test_what_a_session_is_denied_no_extension_allows_its_children(tmp_path: Path) -> None:
    handler = RecordingHandler(
        {ASK: status("allow"), BEFORE: lambda _given, _output: {"permission": "allow"}}
    )
    task = make_call("task", description="d", prompt="p", subagent_type="general")
    script = [make_answer(task), make_answer(make_call("bash", command="touch child")), DONE, DONE]
    rules = {"permission": {"bash": "ask"}, "profile": "ask"}
    async with open_hooked_project(tmp_path, script, handler, **rules) as it:
        denied = [PermissionRule(permission="bash", pattern="*", action="deny")]
        it.project.store.update_session(it.session_id, lambda now: _with(now, denied))
        await it.prompt()
        assert not (it.work / "child").exists()


def _with(session: Any, rules: list[PermissionRule]) -> Any:
    return replace(session, permission=rules)


async def test_a_call_is_asked_about_where_an_extension_wants_it(tmp_path: Path) -> None:
    handler = RecordingHandler({BEFORE: lambda _given, _output: {"permission": "ask"}})
    settings = {"permission": {"bash": "allow"}, "profile": "yolo"}
    async with open_hooked_project(
        tmp_path, [make_answer(make_call("bash", command="touch a")), DONE], handler, **settings
    ) as it:
        asking = asyncio.create_task(it.prompt())
        await it.answer(await it.question(), "reject", "no")
        await asking
        assert not (it.work / "a").exists()


@pytest.mark.slow
async def test_every_way_to_a_call_passes_the_same_hooks(tmp_path: Path) -> None:
    """By the model, in a batch, by a subagent,
    and in a session that another process goes on with.
    """
    handler = RecordingHandler({BEFORE: change_nothing, AFTER: change_nothing})
    batch = [{"tool": "bash", "parameters": {"command": f"echo {n}"}} for n in (1, 2)]
    task = make_call("task", description="d", prompt="p", subagent_type="general")
    script = [
        make_answer(make_call("bash", command="echo 0")),
        make_answer(make_call("batch", tool_calls=batch)),
        make_answer(task),
        make_answer(make_call("bash", command="echo 3")),
        DONE,
        DONE,
    ]
    async with open_hooked_project(tmp_path, script, handler) as it:
        await it.prompt()
        session_id = it.session_id
        commands = [
            given["args"]["command"] for given in handler.given(AFTER) if given["tool"] == "bash"
        ]
        assert sorted(commands) == ["echo 0", "echo 1", "echo 2", "echo 3"]
        assert handler.counts == {BEFORE: 6, AFTER: 6}
    again = RecordingHandler({BEFORE: change_nothing, AFTER: change_nothing})
    async with open_hooked_project(
        tmp_path,
        [make_answer(make_call("bash", command="echo 4")), DONE],
        again,
        session_id=session_id,
    ) as it:
        await it.prompt()
        assert again.counts == {BEFORE: 1, AFTER: 1}


async def test_variables_of_extensions_are_those_of_each_command_anew(tmp_path: Path) -> None:
    seen: list[str] = []

    def environment(given: JSON, _output: JSON) -> JSON:
        seen.append(given["cwd"])
        return {"env": {"TOKEN": f"t{len(seen)}"}}

    handler = RecordingHandler({"shell.env": environment})
    script = [
        make_answer(make_call("bash", command="echo $TOKEN; cd sub; export TOKEN=own")),
        make_answer(make_call("bash", command="echo $TOKEN")),
    ]
    async with open_hooked_project(tmp_path, [*script, DONE], handler) as it:
        (it.work / "sub").mkdir()
        await it.prompt()
        assert [text.split()[0] for text in it.results()] == ["t1", "t2"]
        assert seen == [str(it.work), str(it.work / "sub")]


async def test_the_deadline_of_extensions_is_configured(tmp_path: Path) -> None:
    async with open_hooked_project(
        tmp_path, [DONE], RecordingHandler({BEFORE: change_nothing}), hook_timeout=1500
    ) as it:
        hooks = it.project.engine.hooks.runner
        assert isinstance(hooks, Hooks)
        assert hooks.seconds == 1.5


async def test_a_project_without_hooks_has_none(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        assert it.project.engine.hooks.runner is None
        await it.prompt()
