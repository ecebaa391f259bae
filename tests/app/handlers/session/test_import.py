"""Sessions from files: ours and the reference's."""

import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.agent.calls.call_rules import make_call_rules, read_ceilings
from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.permission.rules import judge_need
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_reports import SESSION_STATS, StatsQuery
from codeloop.schema.api.session_requests import (
    SESSION_GET,
    SESSION_IMPORT,
    SESSION_LIST,
    ImportedSession,
    ImportSession,
    ListSessions,
    SessionId,
)
from codeloop.schema.errors import OperationError, UnknownError
from codeloop.schema.message import AssistantMessage, Revert
from codeloop.schema.part import TextPart, ToolPart, ToolStateCompleted
from codeloop.schema.permission import Need
from tests.support.examples import SHARED_FIXTURE_CHECKS, scale_examples
from tests.support.scripted_project import (
    LOCAL_CLIENT_ONLY,
    ScriptedProject,
    both_clients,
    join_texts,
    make_answer,
    make_call,
    open_scripted_project,
)

__all__ = ["both_clients"]

PATHS = ("secret.txt", "a.txt")
DONE = ScriptedAnswer(text="Done.", tokens=TokenCount(input=5, output=2))
SES, USR, ANS = (
    "ses_1f88ee7d6002abcdefghijklmn",
    "msg_1f88ee7d6001abcdefghijklmn",
    "msg_1f88ee7d6003abcdefghijklmn",
)
ZERO = {"input": 3, "output": 4, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def part(number: int, message: str, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"prt_1f88ee7d6{number:03d}abcdefghijklmn",
        "sessionID": SES,
        "messageID": message,
        "type": kind,
        **more,
    }


def document() -> dict[str, Any]:
    """Return a session as the reference exports it."""
    return {
        "info": {
            "id": SES, "slug": "kind-fox", "projectID": "abc", "directory": "/home/else/p", "title": "From afar",
            "version": "1.18.33", "time": {"created": 1700000000000, "updated": 1700000000500},
            "permission": [
                {"permission": "*", "pattern": "*", "action": "allow"},
                {"permission": "question", "pattern": "*", "action": "deny"},
            ],
            "parentID": "ses_nowhere", "share": {"url": "https://s"}, "futureField": {"x": 1},
        },
        "messages": [
            {
                "info": {
                    "id": USR, "sessionID": SES, "role": "user", "time": {"created": 1700000000001}, "agent": "build",
                    "model": {"providerID": "p", "modelID": "m"},
                },
                "parts": [part(1, USR, "text", text="hello")],
            },
            {
                "info": {
                    "id": ANS, "sessionID": SES, "role": "assistant", "parentID": USR, "modelID": "m",
                    "providerID": "p", "mode": "build", "path": {"cwd": "/p", "root": "/p"}, "cost": 0.25,
                    "tokens": ZERO, "time": {"created": 1700000000002, "completed": 1700000000400},
                    "error": {"name": "BrandNewError", "data": {"message": "it went wrong"}},
                },
                "parts": [
                    part(2, ANS, "step-start"),
                    part(3, ANS, "hologram", beams=7),
                    part(
                        4, ANS, "tool", callID="c", tool="read",
                        state={
                            "status": "completed", "input": {}, "output": "o", "title": "t", "metadata": {},
                            "time": {"start": 1, "end": 2},
                            "attachments": [{"type": "file", "mime": "text/plain", "url": "data:,x"}],
                        },
                    ),
                    part(5, ANS, "text", text="hi"),
                ],
            },
        ],
    }  # fmt: skip


async def bring(it: ScriptedProject, given: dict[str, Any]) -> ImportedSession:
    return await it.client.call(
        SESSION_IMPORT, ImportSession(info=given.get("info"), messages=given.get("messages"))
    )


async def exported(it: ScriptedProject, session_id: str) -> dict[str, Any]:
    info = await it.client.call(SESSION_GET, SessionId(session_id=session_id))
    messages = await it.client.call(SESSION_MESSAGES, ListMessages(session_id=session_id))
    return msgspec.json.decode(msgspec.json.encode({"info": info, "messages": messages}))


@pytest.mark.slow
async def test_what_is_exported_in_one_place_is_the_same_in_another(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with open_scripted_project(
        tmp_path / "a", [make_answer(make_call("bash", command="echo hi")), DONE]
    ) as it:
        await it.prompt("one")
        written = await exported(it, it.session_id)
    async with open_scripted_project(tmp_path / "b", [DONE]) as it:
        done = await bring(it, written)
        assert (done.session.id, done.messages, done.notes) == (written["info"]["id"], 3, [])
        again = await exported(it, done.session.id)
        assert again["messages"] == written["messages"]
        assert again["info"] == {**written["info"], "directory": str(it.work)}
        it.session_id = done.session.id
        assert join_texts((await it.prompt("two")).parts) == "Done."


async def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        await it.prompt("one")
        before = await exported(it, it.session_id)
        changed = copy.deepcopy(before)
        changed["messages"][0]["parts"][0]["text"] = "forged"
        done = await bring(it, changed)
        assert await exported(it, it.session_id) == before
        assert done.session.id != it.session_id
        assert (
            done.notes[0]
            == "Some of its ids are in use here: it was stored as a copy, with new ids."
        )
        entries = it.project.store.read_conversation(done.session.id).entries
        assert [join_texts(entry.parts) for entry in entries] == ["forged", "Done."]
        assert isinstance(entries[1].info, AssistantMessage)
        assert entries[1].info.parent_id == entries[0].info.id
        changed["info"]["id"] = "ses_1f88ee7d6002abcdefghijklmn"
        assert (await bring(it, changed)).session.id != changed["info"]["id"]
        assert await exported(it, it.session_id) == before
        assert (await it.client.call(SESSION_STATS, StatsQuery())).total.steps == 1


async def test_the_references_export_is_read(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        done = await bring(it, document())
        assert (done.session.id, done.messages) == (SES, 2)
        assert (done.session.directory, done.session.project_id) == (str(it.work), "global")
        assert (done.session.parent_id, done.session.share) == (None, None)
        assert (done.session.cost, done.session.tokens and done.session.tokens.input) == (0.25, 3)
        notes = "\n".join(done.notes)
        assert "'hologram'" in notes
        assert "$.messages[1].parts[1]" in notes
        assert SES in {
            each.id
            for each in await it.client.call(
                SESSION_LIST, ListSessions(directory=str(it.work), roots=True)
            )
        }
        _, answer = it.project.store.read_conversation(SES).entries
        assert [type(each).__name__ for each in answer.parts] == [
            "StepStartPart",
            "ToolPart",
            "TextPart",
        ]
        assert isinstance(answer.info, AssistantMessage)
        assert isinstance(answer.info.error, UnknownError)
        assert answer.info.error.data.message == "it went wrong"
        tool = answer.parts[1]
        assert isinstance(tool, ToolPart)
        assert isinstance(tool.state, ToolStateCompleted)
        assert tool.state.attachments
        assert tool.state.attachments[0].message_id == ANS


async def test_an_undo_of_a_file_is_one_that_was_finished(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        given = document()
        given["info"]["revert"] = {"messageID": USR, "snapshot": "0" * 40, "diff": "x"}
        assert (await bring(it, given)).session.revert == Revert(message_id=USR, diff="")


async def test_a_file_can_not_bring_permissions_along(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        done = await bring(it, document())
        assert done.session.permission is None
        (ceiling,) = read_ceilings(done.session)
        assert [rule.action for rule in ceiling.permission] == ["deny"]
        assert any("allow" in note for note in done.notes)


async def test_a_question_of_a_file_lifts_no_denial_of_the_users(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [], permission={"read": {"secret*": "deny"}}) as it:
        given = document()
        given["info"]["permission"] = [{"permission": "*", "pattern": "*", "action": "ask"}]
        given["info"]["metadata"] = {"profile": "yolo", "goal": {"checks": ["id"]}}
        session = (await bring(it, given)).session
        rules = make_call_rules(it.project.engine, session.id, it.project.engine.get_agent("build"))
        found = {
            path: judge_need(Need(permission="read", patterns=(path,)), rules.lists)[0].action
            for path in PATHS
        }
        assert found == {"secret.txt": "deny", "a.txt": "ask"}
        assert not rules.approves_questions


def broken(change: Any) -> dict[str, Any]:
    given = document()
    change(given)
    return given


def answer_of(given: dict[str, Any]) -> dict[str, Any]:
    return given["messages"][1]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda d: d.pop("info"), "$.info"),
        (lambda d: d.pop("messages"), "$.messages"),
        (lambda d: d["info"].pop("title"), "$.info"),
        (lambda d: d["info"]["time"].update(created="now"), "$.info.time.created"),
        (lambda d: d["info"]["time"].update(created=10**30), "$.info.time"),
        (lambda d: d.update(messages={}), "$.messages"),
        (lambda d: d["messages"].append(3), "$.messages[2]"),
        (lambda d: d["messages"].append(d["messages"][0]), "$.messages[2].info.id"),
        (lambda d: answer_of(d).pop("parts"), "$.messages[1].parts"),
        (lambda d: answer_of(d)["info"].update(role="robot"), "$.messages[1].info.role"),
        (lambda d: answer_of(d)["info"]["time"].update(created=-1), "$.messages[1].info.time"),
        (lambda d: answer_of(d)["info"].update(error=7), "$.messages[1].info.error"),
        (lambda d: answer_of(d)["parts"].append("x"), "$.messages[1].parts[4]"),
        (lambda d: answer_of(d)["parts"][3].pop("text"), "$.messages[1].parts[3]"),
        (
            lambda d: answer_of(d)["parts"][2]["state"].update(status="odd"),
            "$.messages[1].parts[2].state.status",
        ),
        (lambda d: answer_of(d)["parts"][3].pop("type"), "$.messages[1].parts[3]"),
    ],
)
async def test_a_broken_file_is_refused_with_the_place_and_nothing_is_stored(
    tmp_path: Path, change: Any, place: str
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        before = it.project.store.read_last_seq()
        with pytest.raises(OperationError) as raised:
            await bring(it, broken(change))
        assert raised.value.kind == "BadRequest"
        assert str(raised.value).endswith(f"at {place}.")
        assert it.project.store.read_last_seq() == before


@pytest.mark.parametrize("name", ["ses_../../x", "nonsense", "", "ses_" + "x" * 999, "msg_1f88"])
async def test_ids_that_are_none_are_replaced(tmp_path: Path, name: str) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        given = document()
        given["info"]["id"] = name
        done = await bring(it, given)
        assert done.session.id != name
        assert len(done.session.id) == len(SES)
        # None of them is in use here.
        assert "in use" not in "\n".join(done.notes)
        assert any("not valid" in note and "new ids" in note for note in done.notes)


async def test_a_part_id_that_is_there_twice_is_replaced(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        given = document()
        answer_of(given)["parts"] = [part(1, ANS, "text", text="an id of the prompt's part")]
        done = await bring(it, given)
        assert (
            "Some of its ids are there twice: it was stored as a copy, with new ids." in done.notes
        )


async def test_parts_out_of_order_keep_their_order(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        given = document()
        answer_of(given)["parts"] = [
            part(9, ANS, "text", text="first"),
            part(8, ANS, "text", text="second"),
        ]
        done = await bring(it, given)
        parts = it.project.store.read_conversation(done.session.id).entries[1].parts
        assert [each.text for each in parts if isinstance(each, TextPart)] == ["first", "second"]
        assert any("out of order" in note for note in done.notes)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    items: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        found += paths(inner, (*here, key))
    return found


@pytest.mark.slow
@LOCAL_CLIENT_ONLY
@settings(max_examples=scale_examples(60), suppress_health_check=SHARED_FIXTURE_CHECKS)
@given(st.sampled_from(paths(document())), JSON)
async def test_whatever_a_file_holds_it_is_imported_whole_or_refused(
    tmp_path_factory: pytest.TempPathFactory, path: tuple[Any, ...], value: Any
) -> None:
    given = copy.deepcopy(document())  # parts of it are shared with other tests
    target: Any = given
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    async with open_scripted_project(tmp_path_factory.mktemp("import"), []) as it:
        done, refused = None, ""
        try:
            done = await bring(it, given)
        except OperationError as error:
            refused = error.kind
        if done is None:
            assert refused == "BadRequest"
            assert len(await it.client.call(SESSION_LIST, ListSessions())) == 1
        else:
            assert len(it.project.store.read_conversation(done.session.id).entries) == done.messages
            assert (await exported(it, done.session.id))["messages"] is not None
            assert await it.client.call(SESSION_STATS, StatsQuery())
