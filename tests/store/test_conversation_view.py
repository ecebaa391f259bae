"""Messages and parts in their places."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.agent.request.window import select_prompts
from codeloop.schema.event import StoredEvent
from codeloop.schema.ids import new_id
from codeloop.schema.part import CompactionPart, TextPart
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry
from codeloop.store.conversation_view import ConversationView, put_part
from codeloop.store.store import Store
from tests.store.states import assistant, created, gone, put, said, session, text, unsaid, user

ONE = session()
MESSAGE = user(ONE.id)


def part(part_id: str, words: str = "") -> TextPart:
    return text(MESSAGE, words, part_id)


@pytest.mark.slow
@given(ids=st.lists(st.sampled_from("abcdefgh"), max_size=20))
def test_parts_stand_in_the_order_of_their_ids_and_the_last_one_put_counts(ids: list[str]) -> None:
    parts: tuple[TextPart, ...] = ()
    for number, one in enumerate(ids):
        parts = tuple(p for p in put_part(parts, part(one, str(number))) if isinstance(p, TextPart))
    assert [p.id for p in parts] == sorted(set(ids))
    assert {p.id: p.text for p in parts} == {one: str(number) for number, one in enumerate(ids)}


@given(times=st.lists(st.integers(0, 5), max_size=10))
def test_messages_stand_in_the_order_of_their_creation_however_they_come(times: list[int]) -> None:
    view = ConversationView(ONE)
    messages = [user(ONE.id, at=time) for time in times]
    for message in reversed(messages):
        view.apply(said(message))
    stand = [entry.info for entry in view.take_snapshot().entries]
    assert stand == sorted(messages, key=lambda info: (info.time.created, info.id))


def test_what_is_removed_may_come_again() -> None:
    view = ConversationView(ONE, [Entry(MESSAGE)])
    view.apply(put(part("a")))
    view.apply(gone(part("a")))
    assert view.take_snapshot().entries == (Entry(MESSAGE),)
    view.apply(unsaid(MESSAGE))
    view.apply(put(part("a")))
    assert view.take_snapshot().entries == ()
    view.apply(said(MESSAGE))
    assert view.take_snapshot().entries == (Entry(MESSAGE),)


def compacted(turns: int, kept: int) -> tuple[list[StoredEvent], str]:
    """Return a session of some turns, a summary of all but the last `kept`, and one turn more;
    and its id.
    """
    one = session()
    events: list[StoredEvent] = [created(one)]
    starts: list[str] = []
    for number in range(turns):
        asked = user(one.id, at=number * 10 + 1)
        answer = assistant(one.id, asked.id, at=number * 10 + 2, done=number * 10 + 3)
        starts.append(asked.id)
        events += [
            said(asked),
            put(text(asked, f"prompt {number}")),
            said(answer),
            put(text(answer, "x" * 50)),
        ]
    asked = user(one.id, at=turns * 10)
    tail = starts[-kept] if kept else None
    part = CompactionPart(
        id=new_id("prt"), session_id=one.id, message_id=asked.id, auto=True, tail_start_id=tail
    )
    note = replace(
        assistant(one.id, asked.id, at=turns * 10 + 1, done=turns * 10 + 2), summary=True
    )
    events += [said(asked), put(part), said(note), put(text(note, "NOTE"))]
    return events, one.id


@pytest.mark.parametrize("kept", [0, 3])
@pytest.mark.parametrize("is_open", [True, False])
def test_what_a_request_may_show_is_kept_after_a_summary_and_nothing_else(
    tmp_path: Path, kept: int, *, is_open: bool
) -> None:
    store = Store(tmp_path / "codeloop.db")
    events, session_id = compacted(10, kept)
    store.append(events[0])
    if is_open:
        store.read_context(session_id)
    store.append(*events[1:])
    whole, recent = store.read_conversation(session_id), store.read_context(session_id)
    assert len(whole.entries) == 22
    assert recent.entries == (
        *(e for e in whole.entries[: 20 - 2 * kept : 2]),
        *whole.entries[20 - 2 * kept :],
    )
    assert store.read_context(session_id) is recent, "kept in memory"


def test_a_summary_that_is_removed_brings_back_what_it_stood_for(tmp_path: Path) -> None:
    store = Store(tmp_path / "codeloop.db")
    events, session_id = compacted(10, 0)
    store.append(*events)
    assert len(store.read_context(session_id).entries) < 22
    asked, note = (entry.info for entry in store.read_conversation(session_id).entries[-2:])
    store.append(unsaid(note), unsaid(asked))
    assert store.read_context(session_id) == store.read_conversation(session_id)
    assert len(store.read_context(session_id).entries) == 20


def test_summaries_do_not_push_the_first_prompt_of_a_turn_out(tmp_path: Path) -> None:
    store = Store(tmp_path / "codeloop.db")
    one = session()
    asked = user(one.id, at=1)
    events: list[StoredEvent] = [created(one), said(asked), put(text(asked, "the task"))]
    for number in range(1, 200):
        wish = user(one.id, at=number * 10)
        part = CompactionPart(id=new_id("prt"), session_id=one.id, message_id=wish.id, auto=True)
        note = replace(
            assistant(one.id, wish.id, at=number * 10 + 1, done=number * 10 + 2), summary=True
        )
        events += [said(wish), put(part), said(note), put(text(note, "NOTE"))]
    store.append(*events)
    entries = store.read_context(one.id).entries
    assert entries[0].info.id == asked.id
    assert select_prompts(entries) == ["the task"]
