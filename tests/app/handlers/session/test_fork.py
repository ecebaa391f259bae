"""Forks: a copy that stands for itself."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.schema.api.session_inputs import ABORT
from codeloop.schema.api.session_requests import (
    SESSION_DELETE,
    SESSION_FORK,
    SESSION_UPDATE,
    ForkSession,
    SessionId,
    UpdateSession,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.event import PartInfo, PartUpdated, make_message_updated, make_session_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, Revert, Session
from codeloop.schema.part import CompactionPart, FilePart, ToolPart, ToolStateCompleted, ToolTime
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import replace
from tests.support.scripted_project import (
    ScriptedProject,
    both_clients,
    join_texts,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)

__all__ = ["both_clients"]

DONE = ScriptedAnswer(text="Done.", tokens=TokenCount(input=5, output=2))


async def fork(it: ScriptedProject, **more: Any) -> Session:
    return await it.client.call(SESSION_FORK, ForkSession(session_id=it.session_id, **more))


def bare(it: ScriptedProject, session_id: str) -> list[tuple[Any, ...]]:
    """Return what was said, without ids."""
    entries = it.project.store.read_conversation(session_id).entries
    return [
        (type(e.info), e.info.time, join_texts(e.parts), [type(part) for part in e.parts])
        for e in entries
    ]


async def test_a_fork_holds_the_same_under_new_ids(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="echo hi")), DONE, DONE]
    ) as it:
        await it.prompt("one")
        await it.prompt("two")
        rules = [PermissionRule(permission="webfetch", pattern="*", action="deny")]
        await it.client.call(
            SESSION_UPDATE, UpdateSession(session_id=it.session_id, permission=rules, title="T")
        )
        before = it.view()
        made = await fork(it)
        after = it.project.store.read_conversation(made.id)
        assert bare(it, made.id) == bare(it, it.session_id)
        assert (made.title, made.parent_id, made.permission) == ("T (fork #1)", None, rules)
        assert (made.agent, made.model, made.directory) == (
            before.session.agent,
            before.session.model,
            str(it.work),
        )
        assert made.cost == before.session.cost
        assert made.tokens == before.session.tokens
        old, new = msgspec.json.encode(before.entries), msgspec.json.encode(after.entries)
        ids = {entry.info.id for entry in before.entries} | {
            part.id for e in before.entries for part in e.parts
        }
        assert not [each for each in {*ids, it.session_id} if each.encode() in new]
        assert all(each.encode() in old for each in ids)
        known = {entry.info.id for entry in after.entries}
        assert all(
            e.info.parent_id in known for e in after.entries if isinstance(e.info, AssistantMessage)
        )
        assert all(part.message_id == e.info.id for e in after.entries for part in e.parts)
        assert it.view() == before


async def test_a_fork_goes_on_alone(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE, ScriptedAnswer(text="Fork.")]) as it:
        await it.prompt("one")
        before = it.view()
        made = await fork(it)
        original, it.session_id = it.session_id, made.id
        await it.prompt("two")
        assert it.project.store.read_conversation(original) == before
        await it.client.call(SESSION_DELETE, SessionId(session_id=original))
        assert [join_texts(entry.parts) for entry in it.view().entries] == [
            "one",
            "Done.",
            "two",
            "Fork.",
        ]


async def test_a_fork_at_a_message_leaves_it_and_what_follows_out(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE, DONE]) as it:
        await it.prompt("one")
        await it.prompt("two")
        third = it.view().entries[2].info.id
        made = await fork(it, message_id=third)
        assert bare(it, made.id) == bare(it, it.session_id)[:2]
        assert made.tokens is not None
        assert made.tokens.input == 5
        first = await fork(it, message_id=it.view().entries[0].info.id)
        assert bare(it, first.id) == []
        with pytest.raises(OperationError) as raised:
            await fork(it, message_id="msg_nowhere")
        assert raised.value.kind == "NotFoundError"


async def test_forks_are_numbered(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        await it.client.call(
            SESSION_UPDATE, UpdateSession(session_id=it.session_id, title="100% (a_b)")
        )
        first, second = await fork(it), await fork(it)
        assert (first.title, second.title) == ("100% (a_b) (fork #1)", "100% (a_b) (fork #2)")
        third = await it.client.call(SESSION_FORK, ForkSession(session_id=first.id))
        assert third.title == "100% (a_b) (fork #3)"


async def test_what_a_turn_still_works_on_is_not_copied(tmp_path: Path) -> None:
    wait = make_answer(make_call("bash", command="touch begun; sleep 77"))
    async with open_scripted_project(tmp_path, [DONE, wait, DONE]) as it:
        await it.prompt("one")
        turn = asyncio.create_task(it.prompt("two"))
        await wait_until((it.work / "begun").exists)
        made = await fork(it)
        assert [entry[2] for entry in bare(it, made.id)] == ["one", "Done.", "two"]
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        await turn


async def test_what_is_undone_is_not_copied(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE, DONE]) as it:
        await it.prompt("one")
        await it.prompt("two")
        undone = replace(
            it.view().session,
            revert=Revert(message_id=it.view().entries[2].info.id, snapshot="a" * 40),
        )
        it.project.store.append(make_session_updated(undone))
        made = await fork(it)
        assert [entry[2] for entry in bare(it, made.id)] == ["one", "Done."]
        assert made.revert is None


async def test_what_points_at_other_messages_points_into_the_copy(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        await it.prompt("one")
        asked, answer = it.view().entries
        own, of = it.session_id, answer.info.id
        file = FilePart(
            id=new_id("prt"), session_id=own, message_id=of, mime="text/plain", url="data:,x"
        )
        state = ToolStateCompleted(
            input={},
            output="",
            title="",
            metadata={},
            time=ToolTime(start=1, end=2),
            attachments=[file],
        )
        tail = asked.info.id
        parts = [
            CompactionPart(
                id=new_id("prt"), session_id=own, message_id=of, auto=True, tail_start_id=tail
            ),
            ToolPart(
                id=new_id("prt"),
                session_id=own,
                message_id=of,
                call_id="c",
                tool="read",
                state=state,
            ),
        ]
        it.project.store.append(
            make_message_updated(answer.info),
            *(
                PartUpdated(properties=PartInfo(session_id=it.session_id, part=part, time=1))
                for part in parts
            ),
        )
        made = await fork(it)
        first, last = it.project.store.read_conversation(made.id).entries
        compaction, tool = last.parts[-2:]
        assert isinstance(compaction, CompactionPart)
        assert compaction.tail_start_id == first.info.id
        assert isinstance(tool, ToolPart)
        assert isinstance(tool.state, ToolStateCompleted)
        assert tool.state.attachments
        assert tool.state.attachments[0].message_id == last.info.id
