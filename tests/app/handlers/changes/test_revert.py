"""Undo and redo of turns: what is stored, what becomes of the files,
also after a kill in between.
"""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from codeloop.app.handlers.changes import revert
from codeloop.app.handlers.changes.final_undo import make_discard_events
from codeloop.client.undo_redo import redo_last, undo_last
from codeloop.schema.api.session_undo import (
    SESSION_REVERT,
    SESSION_UNREVERT,
    RevertSession,
    UnrevertSession,
)
from codeloop.schema.errors import OperationError, UsageProblem
from codeloop.schema.event import (
    StampedEvent,
    make_message_updated,
    make_part_updated,
    make_session_updated,
)
from codeloop.schema.ids import new_id
from codeloop.schema.message import (
    NO_TOKENS,
    AssistantMessage,
    AssistantTime,
    MessagePath,
    ModelRef,
    Session,
    UserMessage,
    UserTime,
)
from codeloop.schema.operation import AnyOperation, Gives, Operation, Takes
from codeloop.schema.part import PatchPart, StepFinishPart, TextPart
from codeloop.schema.wire import replace
from codeloop.store.store import Store
from codeloop.workspace.snapshot.restore import RestoreResult, restore_entries
from codeloop.workspace.snapshot.step_recorder import StepRecorder
from tests.support.scripted_project import ScriptedProject, both_clients, open_scripted_project
from tests.workspace.snapshot.trees_on_disk import snapshots_of, visible, write

__all__ = ["both_clients"]


def warn(text: str) -> None:
    print(text, file=sys.stderr)


@dataclass
class Place:
    """A session whose turns are played without a model, and a client that reaches the handlers."""

    rig: ScriptedProject
    clock: int = 1_000
    users: list[str] = field(default_factory=list[str])

    @property
    def root(self) -> Path:
        return self.rig.work

    @property
    def store(self) -> Store:
        return self.rig.project.store

    def session(self) -> Session:
        return self.store.get_session(self.rig.session_id)

    def say(self, text: str, *, synthetic: bool | None = None) -> None:
        self.clock += 1
        info = UserMessage(
            id=new_id("msg"),
            session_id=self.rig.session_id,
            time=UserTime(created=self.clock),
            agent="build",
            model=ModelRef(provider_id="p", model_id="m"),
        )
        part = TextPart(
            id=new_id("prt"),
            session_id=info.session_id,
            message_id=info.id,
            text=text,
            synthetic=synthetic,
        )
        said = make_message_updated(info)
        self.store.append(said, make_part_updated(part))
        self.users.append(info.id)

    async def step(self, files: dict[str, str]) -> str:
        """Let the agent write files in a step of its own; return the message's id."""
        self.clock += 1
        info = AssistantMessage(
            id=new_id("msg"),
            session_id=self.rig.session_id,
            parent_id=self.users[-1],
            model_id="m",
            provider_id="p",
            mode="build",
            agent="build",
            path=MessagePath(cwd=str(self.root), root=str(self.root)),
            cost=0.5,
            tokens=replace(NO_TOKENS, input=7),
            time=AssistantTime(created=self.clock, completed=self.clock),
        )
        recorder = StepRecorder(self.rig.project.snapshots)
        await recorder.record_before()
        write(self.root, files)
        found = await recorder.finish()
        assert found is not None
        finish = StepFinishPart(
            id=new_id("prt"),
            session_id=info.session_id,
            message_id=info.id,
            reason="stop",
            cost=0.5,
            tokens=info.tokens,
            snapshot=found.after,
        )
        patch = PatchPart(
            id=new_id("prt"),
            session_id=info.session_id,
            message_id=info.id,
            hash=found.before,
            files=list(found.files),
        )
        session = self.session()
        tokens = replace(session.tokens or NO_TOKENS, input=(session.tokens or NO_TOKENS).input + 7)
        session = replace(session, cost=(session.cost or 0) + 0.5, tokens=tokens)
        updated = make_session_updated(session)
        self.store.append(
            make_message_updated(info), make_part_updated(finish), make_part_updated(patch), updated
        )
        return info.id

    async def turn(self, text: str, *steps: dict[str, str]) -> None:
        self.say(text)
        for files in steps:
            await self.step(files)

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        return await self.rig.client.call(operation, args)

    async def follow(
        self, after: int | None = None, root: str | None = None
    ) -> AsyncIterator[StampedEvent]:
        async for each in self.store.follow(after, root=root):
            yield each

    def state(self) -> dict[str, str]:
        return {name: data.decode() for name, (_, data) in visible(self.root).items()}


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with open_scripted_project(tmp_path, []) as it:
        write(it.work, {"a": "0", "b": "0"})
        it.project.snapshots = snapshots_of(it.work, tmp_path)
        yield Place(it)


async def test_turns_are_undone_and_redone_one_by_one(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    states = [place.state()]
    for number in (1, 2, 3):
        steps = {"a": f"{number}"}, {"b": f"{number}", f"new{number}": "n"}
        await place.turn(f"task {number}", *steps)
        states.append(place.state())
    for number in (2, 1, 0):
        assert await undo_last(place, place.session(), dry_run=False, say=print, warn=warn) == 0
        assert place.state() == states[number]
        assert f"Undone: “task {number + 1}”" in capsys.readouterr().out
    with pytest.raises(UsageProblem, match="nothing to undo"):
        await undo_last(place, place.session(), dry_run=False, say=print, warn=warn)
    for number in (1, 2, 3):
        assert await redo_last(place, place.session(), dry_run=False, say=print, warn=warn) == 0
        assert place.state() == states[number]
    assert place.session().revert is None
    with pytest.raises(UsageProblem, match="There is nothing to redo"):
        await redo_last(place, place.session(), dry_run=False, say=print, warn=warn)


async def test_a_message_of_the_program_stands_for_the_turn_that_it_belongs_to(
    place: Place,
) -> None:
    session_id = place.rig.session_id
    await place.turn("one", {"a": "1"})
    place.say("<system-reminder>Go on.</system-reminder>", synthetic=True)
    await place.step({"b": "1"})
    await place.turn("two", {"b": "2"})
    prompt, reminder, second = place.users
    # Clients that do not know the program's own messages go from one user message to the next,
    # in both directions.
    await place.call(SESSION_REVERT, RevertSession(session_id=session_id, message_id=second))
    answer = await place.call(
        SESSION_REVERT, RevertSession(session_id=session_id, message_id=reminder)
    )
    assert answer.revert is not None
    assert answer.revert.message_id == prompt
    assert place.state() == {"a": "0", "b": "0"}
    answer = await place.call(
        SESSION_REVERT, RevertSession(session_id=session_id, message_id=reminder)
    )
    assert answer.revert is not None
    assert answer.revert.message_id == second
    assert place.state() == {"a": "1", "b": "1"}
    await place.call(SESSION_UNREVERT, UnrevertSession(session_id=session_id))
    assert place.state() == {"a": "1", "b": "2"}


async def test_an_undo_that_leaves_a_file_is_called_partial(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    await place.turn("go", {"a": "1", "b": "1"})
    write(place.root, {"a": "mine"})
    assert await undo_last(place, place.session(), dry_run=False, say=print, warn=warn) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ["Undone in part: “go”", "  restored  b"]
    assert shown.err == "  skipped  a: it was changed since\n"


async def test_a_revert_is_stored_with_its_tree_and_diff_and_keeps_the_messages(
    place: Place,
) -> None:
    await place.turn("go", {"a": "1\n"})
    answer = await place.call(
        SESSION_REVERT, RevertSession(session_id=place.rig.session_id, message_id=place.users[0])
    )
    point = place.session().revert
    assert point is not None
    assert answer.revert == point
    assert point.message_id == place.users[0]
    assert point.snapshot is not None
    assert len(point.snapshot) == 40
    assert "-0" in (point.diff or "")
    assert "+1" in (point.diff or "")
    assert answer.outcome is not None
    assert answer.outcome.restored == ["a"]
    assert len(place.store.read_conversation(place.rig.session_id).entries) == 2


async def test_an_assistant_message_stands_for_its_prompt_and_a_part_for_its_step(
    place: Place,
) -> None:
    await place.turn("go", {"a": "1"}, {"b": "2"})
    entries = place.store.read_conversation(place.rig.session_id).entries
    second = entries[-1]
    session_id, message_id = place.rig.session_id, second.info.id
    part_id = second.parts[0].id
    await place.call(
        SESSION_REVERT, RevertSession(session_id=session_id, message_id=message_id, part_id=part_id)
    )
    assert place.state() == {"a": "1", "b": "0"}
    answer = await place.call(
        SESSION_REVERT, RevertSession(session_id=session_id, message_id=message_id)
    )
    assert answer.revert is not None
    assert answer.revert.message_id == place.users[0]
    assert place.state() == {"a": "0", "b": "0"}
    await place.call(SESSION_UNREVERT, UnrevertSession(session_id=place.rig.session_id))
    assert place.state() == {"a": "1", "b": "2"}


async def test_an_unknown_message_changes_nothing(place: Place) -> None:
    await place.turn("go", {"a": "1"})
    answer = await place.call(
        SESSION_REVERT, RevertSession(session_id=place.rig.session_id, message_id="msg_unknown")
    )
    assert answer.revert is None
    assert place.state()["a"] == "1"


async def test_what_the_user_changed_is_left_and_named_both_ways(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    await place.turn("one", {"a": "1", "b": "1"})
    write(place.root, {"a": "mine"})
    assert await undo_last(place, place.session(), dry_run=False, say=print, warn=warn) == 1
    assert "skipped  a: it was changed since" in capsys.readouterr().err
    assert place.state() == {"a": "mine", "b": "0"}
    write(place.root, {"b": "mine too"})
    assert await redo_last(place, place.session(), dry_run=False, say=print, warn=warn) == 1
    assert place.state() == {"a": "mine", "b": "mine too"}


async def test_a_dry_run_changes_nothing(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    await place.turn("one", {"a": "1"})
    before, snapshot = place.session(), await place.rig.project.snapshots.take()
    assert await undo_last(place, before, dry_run=True, say=print, warn=warn) == 0
    assert "Would undo" in capsys.readouterr().out
    assert place.session() == before
    assert place.state()["a"] == "1"
    assert await place.rig.project.snapshots.take() is snapshot, (
        "the next snapshot need not read the files again"
    )


async def test_an_undo_that_failed_half_way_is_finished_by_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.turn("one", dict.fromkeys("abcdef", "1"))
    whole = place.state()

    def half(
        objects: Any, root: Path, moves: Any, notes: Path | None = None, *, dry_run: bool = False
    ) -> RestoreResult:
        restore_entries(objects, root, list(moves)[:3], dry_run=dry_run)
        raise OSError(28, "No space left on device")

    for undo in (True, False):
        with monkeypatch.context() as patched:
            patched.setattr(revert, "restore_entries", half)
            operation: AnyOperation = SESSION_REVERT if undo else SESSION_UNREVERT
            more = {"message_id": place.users[0]} if undo else {}
            args = operation.takes(session_id=place.rig.session_id, **more)
            with pytest.raises(OperationError, match="Do the same again"):
                await place.call(operation, args)
        assert place.state() not in (whole, {"a": "0", "b": "0"})
        await place.call(operation, args)
        assert place.state() == ({"a": "0", "b": "0"} if undo else whole)


async def test_a_new_prompt_makes_an_undo_final(place: Place) -> None:
    await place.turn("one", {"a": "1"})
    await place.turn("two", {"a": "2"})
    await undo_last(place, place.session(), dry_run=False, say=print, warn=warn)
    place.store.append(*make_discard_events(place.store, place.rig.session_id))
    session = place.session()
    assert session.revert is None
    assert session.cost == 0.5
    assert session.tokens is not None
    assert session.tokens.input == 7
    assert len(place.store.read_conversation(session.id).entries) == 2
    assert make_discard_events(place.store, session.id) == []
    await undo_last(place, place.session(), dry_run=False, say=print, warn=warn)
    assert place.state()["a"] == "0"


async def test_a_contents_store_that_is_gone_is_said_and_breaks_nothing(place: Place) -> None:
    await place.turn("one", {"a": "1"})
    place.rig.project.snapshots = snapshots_of(place.root, place.root.parent / "elsewhere")
    answer = await place.call(
        SESSION_REVERT, RevertSession(session_id=place.rig.session_id, message_id=place.users[0])
    )
    assert answer.outcome is not None
    assert [each.path for each in answer.outcome.conflicts] == ["a"]
    assert place.state()["a"] == "1"


async def test_a_session_of_another_work_tree_is_refused(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        session = it.project.store.get_session(it.session_id)
        moved = replace(session, directory=str(tmp_path / "gone"), path="")
        it.project.store.append(make_session_updated(moved))
        rows: list[tuple[AnyOperation, dict[str, str]]] = [
            (SESSION_REVERT, {"message_id": "m"}),
            (SESSION_UNREVERT, {}),
        ]
        for operation, more in rows:
            with pytest.raises(OperationError, match=f"belongs to {tmp_path / 'gone'}"):
                await it.client.call(operation, operation.takes(session_id=session.id, **more))
