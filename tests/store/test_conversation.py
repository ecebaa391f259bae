"""Messages and parts in their places."""

from hypothesis import given
from hypothesis import strategies as st

from codeloop.schema.part import TextPart
from codeloop.store.conversation import Conversation, Entry, View, next_created, with_part
from tests.store.states import gone, put, said, session, text, unsaid, user

ONE = session()
MESSAGE = user(ONE.id)


def part(part_id: str, words: str = "") -> TextPart:
    return text(MESSAGE, words, part_id)


@given(ids=st.lists(st.sampled_from("abcdefgh"), max_size=20))
def test_parts_stand_in_the_order_of_their_ids_and_the_last_one_put_counts(ids: list[str]) -> None:
    parts: tuple[TextPart, ...] = ()
    for number, one in enumerate(ids):
        parts = tuple(p for p in with_part(parts, part(one, str(number))) if isinstance(p, TextPart))
    assert [p.id for p in parts] == sorted(set(ids))
    assert {p.id: p.text for p in parts} == {one: str(number) for number, one in enumerate(ids)}


@given(times=st.lists(st.integers(0, 5), max_size=10))
def test_messages_stand_in_the_order_of_their_creation_however_they_come(times: list[int]) -> None:
    view = View(ONE)
    messages = [user(ONE.id, at=time) for time in times]
    for message in reversed(messages):
        view.apply(said(message))
    stand = [entry.info for entry in view.conversation().entries]
    assert stand == sorted(messages, key=lambda info: (info.time.created, info.id))


def test_what_is_removed_may_come_again() -> None:
    view = View(ONE, [Entry(MESSAGE)])
    view.apply(put(part("a")))
    view.apply(gone(part("a")))
    assert view.conversation().entries == (Entry(MESSAGE),)
    view.apply(unsaid(MESSAGE))
    view.apply(put(part("a")))
    assert view.conversation().entries == ()
    view.apply(said(MESSAGE))
    assert view.conversation().entries == (Entry(MESSAGE),)


def test_a_further_message_comes_last_even_when_the_clock_has_stepped_back() -> None:
    view = Conversation(ONE, (Entry(user(ONE.id, at=1_000)),))
    assert next_created(view, 5) == 1_001
    assert next_created(view, 1_000) == 1_001
    assert next_created(view, 2_000) == 2_000
    assert next_created(Conversation(ONE, ()), 7) == 7
