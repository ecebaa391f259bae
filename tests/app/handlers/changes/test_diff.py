"""What a session changed: the diffs of a prompt's turn, and what is undone."""

from pathlib import Path
from typing import Any

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import SESSION_FORK, ForkSession
from codeloop.schema.api.session_undo import (
    SESSION_DIFF,
    SESSION_REVERT,
    SESSION_UNREVERT,
    UNDO_FILES,
    RevertSession,
    SessionDiffQuery,
    UndoFiles,
    UnrevertSession,
)
from codeloop.schema.errors import ContextOverflowError, OperationError, OverflowData
from codeloop.schema.message import SnapshotFileDiff, UserMessage
from codeloop.schema.wire import replace
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
)

DONE = ScriptedAnswer(text="Done.")


def write(path: str, content: str) -> ScriptedAnswer:
    return make_answer(make_call("write", filePath=path, content=content))


async def diffs(it: ScriptedProject, message_id: str | None = None) -> list[SnapshotFileDiff]:
    return await it.client.call(
        SESSION_DIFF, SessionDiffQuery(session_id=it.session_id, message_id=message_id)
    )


def prompts(it: ScriptedProject) -> list[UserMessage]:
    return [entry.info for entry in it.view().entries if isinstance(entry.info, UserMessage)]


def brief(found: list[SnapshotFileDiff]) -> list[tuple[Any, ...]]:
    return [(each.file, each.additions, each.deletions, each.status) for each in found]


@pytest.mark.slow
async def test_a_turn_is_told_as_one_change_for_each_file(tmp_path: Path) -> None:
    bash = make_answer(
        make_call("bash", command="printf 'x\\n' > made.txt; rm old.txt; echo tmp > gone.txt")
    )
    again = make_answer(
        make_call("edit", filePath="a.txt", oldString="2", newString="3"),
        make_call("bash", command="rm gone.txt"),
    )
    read = make_answer(make_call("read", filePath="a.txt"))
    edit = make_answer(make_call("edit", filePath="a.txt", oldString="1", newString="2"))
    async with open_scripted_project(
        tmp_path, [read, edit, bash, again, DONE, write("b.txt", "b\n"), DONE]
    ) as it:
        (it.work / "a.txt").write_text("1\n")
        (it.work / "old.txt").write_text("old\n")
        await it.prompt("one")
        await it.prompt("two")
        one, two = prompts(it)
        wanted = [
            ("a.txt", 1, 1, "modified"),
            ("made.txt", 1, 0, "added"),
            ("old.txt", 0, 1, "deleted"),
        ]
        found = await diffs(it, one.id)
        assert brief(found) == wanted
        assert "-1" in (found[0].patch or "")
        assert "+3" in (found[0].patch or "")
        assert brief(await diffs(it, two.id)) == [("b.txt", 1, 0, "added")]
        # An answer stands for its prompt.
        assert await diffs(it, it.view().entries[1].info.id) == found
        assert await diffs(it) == []
        assert one.summary is not None
        assert one.summary.diffs == found
        summary = it.view().session.summary
        assert summary is not None
        assert (summary.additions, summary.deletions, summary.files) == (3, 2, 4)


async def test_a_reverted_session_tells_what_is_undone(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [write("a.txt", "a\n"), DONE, write("b.txt", "b\n"), DONE, DONE]
    ) as it:
        await it.prompt("one")
        await it.prompt("two")
        one, two = prompts(it)
        await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=two.id)
        )
        assert brief(await diffs(it)) == [("b.txt", 1, 0, "added")]
        await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=one.id)
        )
        assert brief(await diffs(it)) == [("a.txt", 1, 0, "added"), ("b.txt", 1, 0, "added")]
        await it.client.call(SESSION_UNREVERT, UnrevertSession(session_id=it.session_id))
        assert await diffs(it) == []
        await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=two.id)
        )
        await it.prompt("three")
        assert await diffs(it) == []
        summary = it.view().session.summary
        assert summary is not None
        assert (summary.additions, summary.files) == (1, 1)


async def test_a_turn_that_was_stopped_tells_what_it_had_changed(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [write("a.txt", "a\n"), ScriptedAnswer(text="Cut.", finish="length")]
    ) as it:
        await it.prompt("one")
        (one,) = prompts(it)
        assert one.summary is not None
        assert brief(one.summary.diffs) == [("a.txt", 1, 0, "added")]


async def test_a_turn_that_is_summarised_on_its_way_still_tells_what_it_changed(
    tmp_path: Path,
) -> None:
    long = ScriptedAnswer(error=ContextOverflowError(data=OverflowData(message="too long")))
    note = ScriptedAnswer(kind="side", text="The note.")
    script = [write("a.txt", "a\n"), write("b.txt", "b\n"), long, note, write("c.txt", "c\n"), DONE]
    async with open_scripted_project(tmp_path, script) as it:
        await it.prompt("one")
        told = [brief(info.summary.diffs) for info in prompts(it) if info.summary is not None]
        assert [row for rows in told for row in rows] == [
            (f"{name}.txt", 1, 0, "added") for name in "abc"
        ]
        summary = it.view().session.summary
        assert summary is not None
        assert (summary.additions, summary.files) == (3, 3)


async def test_a_copy_of_a_session_knows_its_diffs(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [write("a.txt", "a\n"), DONE]) as it:
        await it.prompt("one")
        made = await it.client.call(SESSION_FORK, ForkSession(session_id=it.session_id))
        entries = it.project.store.read_conversation(made.id).entries
        copied = await it.client.call(
            SESSION_DIFF, SessionDiffQuery(session_id=made.id, message_id=entries[0].info.id)
        )
        assert brief(copied) == [("a.txt", 1, 0, "added")]


async def test_a_message_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        with pytest.raises(OperationError) as raised:
            await diffs(it, "msg_none")
        assert raised.value.kind == "NotFoundError"
        assert str(raised.value) == "Message not found: msg_none"


async def test_a_binary_file_is_named_without_lines(tmp_path: Path) -> None:
    made = make_answer(make_call("bash", command="head -c 100 /dev/zero > zeros"))
    async with open_scripted_project(tmp_path, [made, DONE]) as it:
        await it.prompt()
        (found,) = await diffs(it, prompts(it)[0].id)
        assert replace(found, file=None) == SnapshotFileDiff(
            additions=0, deletions=0, patch="", status="added"
        )


async def test_all_that_a_session_changed_holds_what_its_subagents_changed(tmp_path: Path) -> None:
    task = make_call("task", description="Write", prompt="write b", subagent_type="general")
    more = make_answer(make_call("bash", command="echo c >> b.txt"))
    answers = [write("a.txt", "a\n"), make_answer(task), write("b.txt", "b\n"), DONE, more, DONE]
    async with open_scripted_project(tmp_path, answers) as it:
        await it.prompt("one")
        whole = await it.client.call(
            SESSION_DIFF, SessionDiffQuery(session_id=it.session_id, whole=True)
        )
        assert brief(whole) == [("a.txt", 1, 0, "added"), ("b.txt", 2, 0, "added")]
        assert brief(await diffs(it, prompts(it)[0].id)) == brief(whole)
        summary = prompts(it)[0].summary
        assert summary is not None
        assert brief(summary.diffs) == brief(whole)


@pytest.mark.slow
async def test_undo_takes_back_what_subagents_did_and_redo_brings_it_again(tmp_path: Path) -> None:
    task = make_answer(
        make_call("task", description="Write", prompt="write b", subagent_type="general")
    )
    more = make_answer(make_call("bash", command="echo c >> b.txt"))
    turn = [write("a.txt", "a\n"), task, write("b.txt", "b\n"), DONE, more, DONE]
    async with open_scripted_project(tmp_path, [*turn, write("c.txt", "c\n"), DONE]) as it:
        await it.prompt("one")
        back = RevertSession(session_id=it.session_id, message_id=prompts(it)[0].id)
        outcome = (await it.client.call(SESSION_REVERT, back)).outcome
        assert outcome is not None
        assert (outcome.restored, outcome.conflicts) == (["a.txt", "b.txt"], [])
        assert not (it.work / "b.txt").exists()
        assert brief(await diffs(it)) == [("a.txt", 1, 0, "added"), ("b.txt", 2, 0, "added")]
        await it.client.call(SESSION_UNREVERT, UnrevertSession(session_id=it.session_id))
        assert (it.work / "b.txt").read_text() == "b\nc\n"
        one = UndoFiles(session_id=it.session_id, files=["b.txt"])
        assert (await it.client.call(UNDO_FILES, one)).outcome.restored == ["b.txt"]
        await it.client.call(UNDO_FILES, replace(one, redo=True))
        await it.client.call(SESSION_REVERT, back)
        await it.prompt("two")  # what is undone is gone for good, the subagent's with it
        whole = await it.client.call(
            SESSION_DIFF, SessionDiffQuery(session_id=it.session_id, whole=True)
        )
        assert brief(whole) == [("c.txt", 1, 0, "added")]
        (child,) = it.project.store.list_sessions(parent=it.session_id)
        assert child.revert is not None


async def test_a_prompt_after_an_undo_of_a_subagent_s_work_changes_its_own_session_only(
    tmp_path: Path,
) -> None:
    task = make_answer(
        make_call("task", description="Write", prompt="write b", subagent_type="general")
    )
    async with open_scripted_project(
        tmp_path, [task, write("b.txt", "b\n"), DONE, DONE, DONE]
    ) as it:
        await it.prompt("one")
        (child,) = it.project.store.list_sessions(parent=it.session_id)
        back = RevertSession(session_id=it.session_id, message_id=prompts(it)[0].id)
        await it.client.call(SESSION_REVERT, back)
        await it.prompt("two", agent="plan")
        assert it.view().session.agent == "plan"
        assert it.project.store.get_session(child.id).agent == child.agent == "general"
