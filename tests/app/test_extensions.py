"""Extensions in a project that is opened in this process, with real hosts: a person's own,
outside of the sandbox.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.calls.call_rules import make_call_rules
from codeloop.app.app import App
from codeloop.app.extensions.extension_operations import serve_operation
from codeloop.app.extensions.start_extensions import list_code_paths
from codeloop.app.models.open_models import SingleModel
from codeloop.app.process_dispatch import carry_out
from codeloop.app.project import Project
from codeloop.client.local import LocalClient
from codeloop.extend.hooks.answer_filter import Reach
from codeloop.extend.host.hosts import ExtensionHosts
from codeloop.extend.host.protocol import OperationCall
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.permission.rules import judge_need
from codeloop.schema.api.session_inputs import PROMPT, Prompt, TextPartInput
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import Branch, BranchUpdated, Busy, Delta, PartDelta, ToastShown
from codeloop.schema.permission import Need
from codeloop.schema.wire import replace
from tests.support.extension_waits import patient_extensions
from tests.support.scripted_project import (
    RequestRecorder,
    ScriptedProject,
    make_answer,
    make_call,
    make_startup,
    open_scripted_project,
    wait_until,
)

__all__ = ["patient_extensions"]
WORD = '''
from pathlib import Path


def word(ctx) -> str:
    """Give the word."""
    return "WORD"
'''
DONE = ScriptedAnswer(text="Done.")
OPEN: dict[str, Any] = {"sandbox": "off", "permission": {"*": "allow"}}


def own(tmp_path: Path, name: str, text: str) -> Path:
    """Write an extension of the person's: `tool/x.py`."""
    file = tmp_path / "home" / "config" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def hosts(project: Project) -> ExtensionHosts:
    found = project.services.extensions.hosts
    assert found is not None
    return found


def offered(it: ScriptedProject) -> dict[str, str]:
    return {spec.name: spec.description for spec in it.model.requests[-1].tools}


@pytest.mark.slow
async def test_a_known_tool_is_offered_before_any_host_is_started(tmp_path: Path) -> None:
    own(tmp_path, "tool/word.py", WORD)
    async with open_scripted_project(tmp_path, [DONE], **OPEN) as it:
        await it.prompt()
        assert offered(it)["word"] == "Give the word."
    async with open_scripted_project(
        tmp_path, [DONE, make_answer(make_call("word")), DONE], **OPEN
    ) as it:
        log = it.project.settings.home / "extensions" / "python.log"
        log.unlink()
        await it.prompt()
        assert offered(it)["word"] == "Give the word."
        assert not log.exists(), "no host was started for that"
        await it.prompt()
        assert it.results() == ["WORD"]
        assert log.exists()


@pytest.mark.slow
async def test_a_changed_tool_is_loaded_anew_between_turns(tmp_path: Path) -> None:
    file = own(tmp_path, "tool/word.py", WORD)
    (tmp_path / "work").mkdir()
    model = RequestRecorder(ScriptedModel([make_answer(make_call("word")), DONE] * 3))
    app = App(make_startup(tmp_path / "home", tmp_path / "work", **OPEN), SingleModel(model))

    async def say() -> list[str]:
        session = await carry_out(
            app, SESSION_CREATE, CreateSession(title="one"), tmp_path / "work"
        )
        given = Prompt(session_id=session.id, parts=[TextPartInput(text="go")])
        await carry_out(app, PROMPT, given, tmp_path / "work")
        project = await app.get_project(tmp_path / "work")
        return ScriptedProject(project, model, session.id, LocalClient(project)).results()

    try:
        assert await say() == ["WORD"]
        file.write_text(
            WORD.replace('"WORD"', '"OTHER"').replace("Give the", "Give another"), encoding="utf-8"
        )
        assert await say() == ["OTHER"]
        assert {spec.name: spec.description for spec in model.requests[-1].tools}[
            "word"
        ] == "Give another word."
        file.unlink()
        assert "There is no tool named word" in (await say())[0]
    finally:
        await app.close()


FOLLOWER = """
import asyncio
from pathlib import Path
from codeloop.extension import hook

seen = Path("seen")


@hook("event")
async def follow(event, ctx):
    if event["type"] == "session.updated":
        await ctx.operation("session.list")
    with seen.open("a") as file:
        file.write(event["type"] + "\\n")
    if Path("hang").exists():
        await asyncio.Event().wait()
"""


@pytest.mark.slow
async def test_a_plugin_hears_of_events_and_one_that_hangs_is_left_behind(tmp_path: Path) -> None:
    own(tmp_path, "plugin/follower.py", FOLLOWER)
    async with open_scripted_project(tmp_path, [DONE, DONE], **OPEN) as it:
        seen = it.work / "seen"
        await it.prompt()
        await wait_until(lambda: seen.exists() and "session.idle" in seen.read_text())
        for directory in ("/elsewhere", str(it.work)):
            it.project.store.publish_live(
                BranchUpdated(properties=Branch(branch=directory)), directory
            )
        await wait_until(lambda: "vcs.branch.updated" in seen.read_text())
        assert seen.read_text().count("vcs.branch.updated") == 1, (
            "that of another directory is not its own"
        )
        assert "message.part.updated" in seen.read_text()
        told = list[str]()
        following = asyncio.create_task(_toasts(it.project, told))
        (it.work / "hang").touch()
        more = Delta(session_id=it.session_id, message_id="m", part_id="p", field="text", delta="x")
        for _ in range(30):
            for _ in range(100):
                it.project.store.publish_live(PartDelta(properties=more))
            await asyncio.sleep(0)
        await wait_until(lambda: told)
        await it.prompt()
        following.cancel()
        assert told == [
            "The extension host python does not keep up with events: some are left out."
        ]


@pytest.mark.slow
async def test_a_plugin_hears_of_events_again_when_its_host_has_died(tmp_path: Path) -> None:
    own(tmp_path, "plugin/follower.py", FOLLOWER)
    own(tmp_path, "tool/die.py", "import os\n\ndef die() -> str:\n    os._exit(5)\n")
    async with open_scripted_project(
        tmp_path, [DONE, make_answer(make_call("die")), DONE, DONE], **OPEN
    ) as it:
        seen = it.work / "seen"
        await it.prompt()
        await wait_until(lambda: seen.exists() and "session.idle" in seen.read_text())
        await it.prompt()
        assert "exit code 5" in it.results()[0]
        async with asyncio.timeout(60):
            while "vcs.branch.updated" not in seen.read_text():
                here = str(it.work)
                it.project.store.publish_live(BranchUpdated(properties=Branch(branch=here)), here)
                await asyncio.sleep(0.02)


async def _toasts(project: Project, told: list[str]) -> None:
    async for stamped in project.store.follow():
        match stamped.event:
            case ToastShown(properties=toast):
                told.append(toast.message)
            case _:
                pass


REACHING = """
from codeloop.extension import hook, tool

@tool
async def look(which: str, ctx) -> str:
    found = await ctx.operation(which, query={"limit": 1})
    return str(len(found))
"""


async def test_a_tool_reaches_the_api(tmp_path: Path) -> None:
    own(tmp_path, "plugin/reaching.py", REACHING)
    script = [
        make_answer(make_call("look", which="session.list")),
        make_answer(make_call("look", which="nothing.like_it")),
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, **OPEN) as it:
        await it.prompt()
        found, missing = it.results()
        assert found == "1"
        assert "There is no operation nothing.like_it" in missing


async def test_a_persons_extension_in_the_project_counts_as_what_commands_could_have_written(
    tmp_path: Path,
) -> None:
    inside, outside = tmp_path / "work/mine.py", own(tmp_path, "else/mine.py", WORD)
    inside.parent.mkdir()
    inside.write_text(WORD, encoding="utf-8")
    async with open_scripted_project(
        tmp_path, [DONE], plugin=[str(inside), str(outside)], **OPEN
    ) as it:
        found = {
            each.path: hosts(it.project).get_key(each).is_confined
            for each in hosts(it.project).extensions
        }
    assert found == {str(inside): True, str(outside): False}


async def test_an_extension_in_the_sandbox_asks_for_nothing_that_leads_out(tmp_path: Path) -> None:
    own(tmp_path, "tool/word.py", WORD)
    async with open_scripted_project(tmp_path, [DONE], **OPEN) as it:
        await it.prompt()
        carry, root = await hosts(it.project).run_operation, tmp_path / "work"
        for name in ("session.shell", "pty.create", "permission.reply", "config.update"):
            with pytest.raises(OperationError, match="not for extensions that come with a project"):
                await serve_operation(carry, OperationCall(1, name), "project", root)
            with pytest.raises(OperationError, match="leads out of the sandbox"):
                await serve_operation(carry, OperationCall(1, name), "own", root)
        assert await serve_operation(carry, OperationCall(1, "session.list"), "project", root)


DENYING = {"permission": "bash", "pattern": "*", "action": "deny"}
ALLOWING = {"permission": [{"permission": "*", "pattern": "*", "action": "allow"}]}


@pytest.mark.parametrize("reach", ["project", "own"])
@pytest.mark.parametrize(
    ("name", "query", "body"),
    [
        ("session.create", {}, ALLOWING),
        ("session.update", {}, ALLOWING),
        ("session.create", {}, {"metadata": {"profile": "yolo"}}),
        ("session.create", {}, {"metadata": {"within": []}}),
        ("session.update", {}, {"metadata": {"profile": "yolo"}}),
        ("session.update", {}, {"metadata": {"goal": {"checks": ["id"]}}}),
        ("session.update", {}, {"metadata": {"within": []}}),
        (
            "session.update",
            {},
            {"permission": [{"permission": "read", "pattern": "*", "action": "ask"}]},
        ),
        ("session.prompt", {}, {"parts": [], "tools": {"*": True}}),
        ("session.prompt", {}, {"parts": [], "agent": "general"}),
        ("session.prompt", {}, {"parts": [], "goal": {"checks": ["id"]}}),
        ("session.prompt_async", {}, {"parts": [], "goal": {"checks": []}}),
        ("session.prompt", {}, {"parts": [], "limits": {"directories": ["/"]}}),
        (
            "session.prompt",
            {},
            {"parts": [{"type": "file", "mime": "text/plain", "url": "file://{home}/key"}]},
        ),
        (
            "session.prompt_async",
            {},
            {"parts": [{"type": "file", "mime": "text/plain", "url": "file:.%65nv"}]},
        ),
        (
            "session.prompt",
            {},
            {"parts": [{"type": "file", "mime": "text/plain", "url": "file://{root}/link"}]},
        ),
        ("file.read", {"path": ".env"}, None),
        ("file.read", {"path": "link"}, None),
        ("file.read", {"path": "sub/../.env"}, None),
    ],
)
async def test_what_a_person_may_do_by_the_api_leads_no_extension_out_of_its_sandbox(
    tmp_path: Path, reach: Reach, name: str, query: dict[str, str], body: Any
) -> None:
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "work/.env").write_text("KEY=the secret")
    (tmp_path / "work/link").symlink_to(".env")
    (tmp_path / "key").write_text("the secret")
    given = json.loads(
        json.dumps(body).replace("{home}", str(tmp_path)).replace("{root}", str(tmp_path / "work"))
    )
    own(tmp_path, "tool/word.py", WORD)
    async with open_scripted_project(tmp_path, [DONE], **OPEN) as it:
        await it.prompt()
        path = (
            {"sessionID": it.session_id}
            if name in {"session.update", "session.prompt", "session.prompt_async"}
            else {}
        )
        asked = OperationCall(1, name, path=path, query=query, body=given)
        with pytest.raises(OperationError, match="an extension in a sandbox can't"):
            await serve_operation(
                await hosts(it.project).run_operation, asked, reach, tmp_path / "work"
            )


async def test_a_session_that_an_extension_makes_is_allowed_no_more_than_those_at_work(
    tmp_path: Path,
) -> None:
    own(tmp_path, "tool/word.py", WORD)
    # A profile that asks, an agent that may not edit, and rules of the extension's that
    # come after the user's denial.
    async with open_scripted_project(tmp_path, [DONE], permission={"read": "deny"}) as it:
        run, root = await hosts(it.project).run_operation, tmp_path / "work"
        store = it.project.store
        store.update_session(
            it.session_id,
            lambda session: replace(session, agent="plan", metadata={"profile": "ask"}),
        )
        store.statuses[it.session_id] = Busy()
        rules = [{"permission": "read", "pattern": "*", "action": "ask"}]
        body = {"permission": rules, "agent": "build", "metadata": {"mine": 1}}
        made = await serve_operation(
            run, OperationCall(1, "session.create", body=body), "own", root
        )
        del store.statuses[it.session_id]
        assert made.permission is None
        assert made.metadata["mine"] == 1
        lists = make_call_rules(
            it.project.engine, made.id, it.project.engine.get_agent("build")
        ).lists
        for permission, action in (("edit", "deny"), ("read", "deny"), ("webfetch", "ask")):
            assert (
                judge_need(Need(permission=permission, patterns=("a",)), lists)[0].action == action
            ), permission
        later = {"metadata": {**made.metadata, "mine": 2}, "permission": [DENYING]}
        path = {"sessionID": made.id}
        changed = await serve_operation(
            run, OperationCall(1, "session.update", path=path, body=later), "own", root
        )
        assert changed.metadata == {**made.metadata, "mine": 2}
        assert [each.action for each in changed.permission] == ["deny"]


async def test_an_extension_prompts_with_the_agent_that_the_session_has(tmp_path: Path) -> None:
    own(tmp_path, "tool/word.py", WORD)
    async with open_scripted_project(tmp_path, [DONE, DONE, DONE], **OPEN) as it:
        run, root = await hosts(it.project).run_operation, tmp_path / "work"
        made = await serve_operation(run, OperationCall(1, "session.create", body={}), "own", root)
        path = {"sessionID": made.id}
        body: dict[str, Any] = {"parts": [{"type": "text", "text": "go"}], "agent": "plan"}
        await serve_operation(
            run, OperationCall(2, "session.prompt", path=path, body=body), "own", root
        )
        assert it.project.store.get_session(made.id).agent == "plan"
        with pytest.raises(OperationError, match="can't choose the agent build"):
            await serve_operation(
                run,
                OperationCall(3, "session.prompt", path=path, body={**body, "agent": "build"}),
                "own",
                root,
            )


async def test_a_search_shows_extensions_nothing_of_files_with_keys(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for file in (".env", "plain"):
        (tmp_path / "work" / file).write_text("KEY=the secret")
    own(tmp_path, "tool/word.py", WORD)
    async with open_scripted_project(tmp_path, [DONE], **OPEN) as it:
        await it.prompt()
        asked = OperationCall(1, "find.text", query={"pattern": "secret"})
        found = await serve_operation(
            await hosts(it.project).run_operation, asked, "own", tmp_path / "work"
        )
        assert [Path(line.path.text).name for line in found] == ["plain"]


async def test_one_that_can_not_be_loaded_is_named_once_and_the_others_work(tmp_path: Path) -> None:
    own(tmp_path, "tool/broken.py", "import nothing_like_this\n")
    own(tmp_path, "tool/word.py", WORD)
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("word")), DONE], **OPEN
    ) as it:
        await it.prompt()
        assert it.results() == ["WORD"]
        (why,) = hosts(it.project).failures.values()
        assert "nothing_like_this" in why


def test_a_plugin_in_the_home_itself_does_not_open_the_home(tmp_path: Path) -> None:
    assert list_code_paths(tmp_path / "guard.py", tmp_path)[0] == tmp_path / "guard.py"
    assert list_code_paths(tmp_path / "plugins/guard.py", tmp_path)[0] == tmp_path / "plugins"
