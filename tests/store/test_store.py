"""The store: all or nothing, the same in every process, and nothing left after a deletion."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.schema.errors import OperationError
from codeloop.schema.event import StoredEvent, Todos, TodoUpdated
from codeloop.schema.live_events import Busy, Idle, SessionState, StatusChanged
from codeloop.schema.message import Session, Todo
from codeloop.schema.wire import replace
from codeloop.store.database import StoreError
from codeloop.store.store import MAX_OPEN_VIEWS, Store
from tests.store.states import (
    asked,
    assistant,
    created,
    deleted,
    gone,
    put,
    question,
    replied,
    said,
    session,
    text,
    unsaid,
    updated,
    user,
)
from tests.support.examples import scale_examples

TABLES = ("session", "message", "part", "todo", "permission")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "codeloop.db"


def counts(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as db:
        return {
            table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES
        }


def test_what_was_appended_is_there_for_a_store_opened_later(path: Path) -> None:
    one = session()
    message = user(one.id)
    part = text(message, "hello")
    store = Store(path)
    last = store.append(created(one), said(message), put(part))
    store.close()
    later = Store(path)
    assert later.read_last_seq() == last == 3
    view = later.read_conversation(one.id)
    assert (view.session, view.entries[0].info, view.entries[0].parts) == (one, message, (part,))


def test_an_event_that_fails_takes_back_all_of_its_append(path: Path) -> None:
    store = Store(path)
    one = session()
    store.append(created(one))
    message = user(one.id)
    huge = replace(message, time=replace(message.time, created=1 << 70))
    before = store.read_conversation(one.id)
    with pytest.raises(OverflowError):
        store.append(said(message), updated(replace(one, title="changed")), said(huge))
    assert store.read_last_seq() == 1
    assert store.read_conversation(one.id) is before
    assert store.get_session(one.id).title == "a title"
    assert Store(path).read_conversation(one.id).entries == ()
    store.append(said(message))
    assert [entry.info for entry in store.read_conversation(one.id).entries] == [message]


def test_nothing_to_append_changes_nothing(path: Path) -> None:
    store = Store(path)
    one = session()
    last = store.append(created(one))
    view = store.read_conversation(one.id)
    assert store.append() == last
    assert store.read_conversation(one.id) is view


def test_a_missing_session_is_named(path: Path) -> None:
    store = Store(path)
    assert store.find_session("ses_none") is None
    with pytest.raises(OperationError, match="Session not found: ses_none") as raised:
        store.read_conversation("ses_none")
    assert raised.value.kind == "NotFoundError"


def test_changes_of_a_session_by_two_writers_at_once_all_count(path: Path) -> None:
    one, times = session(), 60
    Store(path).append(created(one))
    begin = threading.Barrier(2)

    def write() -> None:
        store = Store(path)
        begin.wait()
        for _ in range(times):
            store.update_session(one.id, lambda now: replace(now, cost=(now.cost or 0.0) + 1))

    with ThreadPoolExecutor(2) as pool:
        for written in [pool.submit(write) for _ in range(2)]:
            written.result()
    assert Store(path).get_session(one.id).cost == (one.cost or 0.0) + 2 * times


def test_a_change_that_changes_nothing_is_no_event_and_one_of_nothing_is_refused(
    path: Path,
) -> None:
    store, one = Store(path), session()
    last = store.append(created(one))
    assert store.update_session(one.id, lambda now: now) == one
    assert store.read_last_seq() == last
    with pytest.raises(OperationError, match="Session not found: ses_none"):
        store.update_session("ses_none", lambda now: now, put(text(user(one.id), "lost")))
    assert store.read_last_seq() == last


def test_sessions_come_newest_change_first(path: Path) -> None:
    store = Store(path)
    old, new, child = session(at=1), session(at=5), session(at=3)
    child = replace(child, parent_id=old.id, directory="/q")
    store.append(created(old), created(new), created(child))
    assert [one.id for one in store.list_sessions()] == [new.id, child.id, old.id]
    assert [one.id for one in store.list_sessions(directory="/p")] == [new.id, old.id]
    assert [one.id for one in store.list_sessions(parent=old.id)] == [child.id]
    assert [one.id for one in store.list_sessions(limit=1)] == [new.id]
    store.append(updated(replace(old, time=replace(old.time, updated=9))))
    assert store.list_sessions()[0].id == old.id


def test_questions_wait_until_they_are_answered(path: Path) -> None:
    store = Store(path)
    parent = session()
    child = session(parent=parent.id)
    grandchild = session(parent=child.id)
    stranger = session()
    store.append(*(created(one) for one in (parent, child, grandchild, stranger)))
    first, second, third = question(parent.id), question(child.id), question(parent.id)
    store.append(asked(first), asked(second), asked(third))
    assert store.list_pending_permissions() == [first, second, third]
    assert store.list_pending_permissions(child.id) == [second]
    store.append(replied(first, "always"), replied(second, "always"), replied(third, "once"))
    assert store.list_pending_permissions() == []


def test_a_deletion_leaves_nothing_but_its_own_event(path: Path) -> None:
    store = Store(path)
    one, other = session(), session()
    message = user(one.id)
    todos = Todos(session_id=one.id, todos=[Todo(content="c", status="pending", priority="low")])
    store.append(created(one), created(other), said(message), put(text(message, "secret")))
    store.append(TodoUpdated(properties=todos), asked(question(one.id)))
    assert store.list_todos(one.id) == todos.todos
    store.read_conversation(one.id)
    store.append(deleted(one))
    assert counts(path) == {"session": 1, "message": 0, "part": 0, "todo": 0, "permission": 0}
    assert b"secret" not in b"".join(bytes(str(e), "utf-8") for e in store.outbox.read_events(0))
    with pytest.raises(OperationError):
        store.read_conversation(one.id)


def test_a_closed_store_says_so_instead_of_crashing(path: Path) -> None:
    store = Store(path)
    store.close()
    with pytest.raises(StoreError, match=r"codeloop\.db"):
        store.append(created(session()))


def test_more_conversations_than_are_kept_in_memory_read_the_same(path: Path) -> None:
    store = Store(path)
    sessions = [session() for _ in range(MAX_OPEN_VIEWS + 3)]
    for one in sessions:
        store.append(created(one))
    for _ in range(2):
        for number, one in enumerate(sessions):
            store.append(said(user(one.id, at=number)))
            store.read_conversation(one.id)
    assert all(len(store.read_conversation(one.id).entries) == 2 for one in sessions)


def test_the_conversations_of_sessions_that_work_stay_in_memory(path: Path) -> None:
    store = Store(path)
    working = [session() for _ in range(MAX_OPEN_VIEWS + 3)]
    for one in working:
        store.append(created(one))
        store.publish_live(StatusChanged(properties=SessionState(session_id=one.id, status=Busy())))
    before = [store.read_context(one.id) for one in working]
    others = [session() for _ in range(MAX_OPEN_VIEWS)]
    for one in others:
        store.append(created(one))
        store.read_context(one.id)
    assert all(
        store.read_context(one.id) is seen for one, seen in zip(working, before, strict=True)
    )
    for one in working:
        store.publish_live(StatusChanged(properties=SessionState(session_id=one.id, status=Idle())))
    store.append(created(last := session()))
    store.read_context(last.id)
    assert store.read_context(working[0].id) is not before[0], (
        "those that end are dropped like others"
    )


def test_an_unchanged_conversation_is_the_same_object_and_so_is_an_unchanged_entry(
    path: Path,
) -> None:
    store = Store(path)
    one = session()
    first, second = user(one.id, at=1), user(one.id, at=2)
    store.append(created(one), said(first), said(second))
    view = store.read_conversation(one.id)
    assert store.read_conversation(one.id) is view
    store.append(put(text(second, "more")))
    after = store.read_conversation(one.id)
    assert after is not view
    assert after.entries[0] is view.entries[0]
    assert after.entries[1] is not view.entries[1]


class World:
    """Two sessions and what was put into them; makes events out of random numbers."""

    def __init__(self) -> None:
        self.sessions: list[Session] = [session(), session()]
        self.messages: dict[str, Any] = {}
        self.parts: dict[str, Any] = {}

    def event(self, kind: int, pick: int, words: str) -> StoredEvent:
        one = self.sessions[pick % 2]
        messages, parts = list(self.messages.values()), list(self.parts.values())
        if kind == 0 or not messages:
            made = user(one.id, at=pick) if pick % 3 else assistant(one.id, "msg_x", at=pick)
            self.messages[made.id] = made
            return said(made)
        message = messages[pick % len(messages)]
        if kind == 1 or not parts:
            part = text(message, words, f"prt_{pick:03}" if pick % 2 else None)
            part = self.parts.get(part.id, part)
            self.parts[part.id] = part
            return put(replace(part, text=words))
        if kind == 2:
            changed = replace(message, agent=words)
            return said(changed)
        if kind == 3:
            return put(replace(parts[pick % len(parts)], text=words))
        if kind == 4:
            part = parts[pick % len(parts)]
            del self.parts[part.id]
            return gone(part)
        if kind == 5:
            del self.messages[message.id]
            self.parts = {
                key: part for key, part in self.parts.items() if part.message_id != message.id
            }
            return unsaid(message)
        return updated(replace(one, title=words))


STEPS = st.lists(
    st.tuples(
        st.integers(0, 6), st.integers(0, 50), st.text(max_size=3), st.booleans(), st.booleans()
    ),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=scale_examples(60))
@given(steps=STEPS)
def test_the_view_in_memory_always_equals_what_a_new_store_reads(
    steps: list[tuple[int, int, str, bool, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("view") / "codeloop.db"
    here, elsewhere = Store(path), Store(path)
    world = World()
    here.append(*(created(one) for one in world.sessions))
    for kind, pick, words, away, look in steps:
        (elsewhere if away else here).append(world.event(kind, pick, words))
        if look:
            here.read_conversation(world.sessions[pick % 2].id)
    fresh = Store(path)
    for one in world.sessions:
        stored = fresh.read_conversation(one.id)
        assert here.read_conversation(one.id) == stored
        assert elsewhere.read_conversation(one.id) == stored
    for store in (here, elsewhere, fresh):
        store.close()
