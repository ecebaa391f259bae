"""Server-sent events, however the network splits them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.net.sse import EventStream, EventTooLong
from codeloop.schema.limits import MODEL_ANSWER

LINES = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=12)


def feed(*chunks: bytes) -> list[bytes]:
    stream = EventStream()
    return [data for chunk in chunks for data in stream.feed(chunk)]


@given(st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=5), st.sampled_from(["\n", "\r", "\r\n"]), st.data())
def test_any_split_and_any_line_end_give_the_same_events(
    events: list[list[str]], end: str, data: st.DataObject
) -> None:
    text = "".join(
        f": note{end}event: x{end}" + "".join(f"data: {line}{end}" for line in lines) + f"id: 1{end}{end}"
        for lines in events
    )
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    chunks = [raw[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert feed(*chunks) == ["\n".join(lines).encode() for lines in events]


def test_one_byte_at_a_time_keeps_characters_whole() -> None:
    raw = 'data: {"text":"größe 漢字 🎉"}\r\n\r\n'.encode()
    assert feed(*(raw[at : at + 1] for at in range(len(raw)))) == ['{"text":"größe 漢字 🎉"}'.encode()]


def test_comments_and_events_without_data_give_nothing() -> None:
    assert feed(b": keep-alive\n\n", b"event: ping\n\n", b"retry: 5\n\n\n\n", b"data\n\n") == []


def test_a_byte_order_mark_and_a_missing_blank_after_the_colon_are_allowed() -> None:
    assert feed(b"\xef\xbb\xbfdata:one\n\ndata:  two\n\n") == [b"one", b" two"]


def test_an_event_that_the_end_cuts_off_is_never_given() -> None:
    assert feed(b"data: one\n\ndata: tw") == [b"one"]


def test_an_endless_event_is_an_error_and_not_all_of_the_memory() -> None:
    stream = EventStream()
    piece = b"x" * (1 << 22)
    for _ in range(MODEL_ANSWER.value // len(piece)):
        assert stream.feed(piece) == []
    with pytest.raises(EventTooLong):
        stream.feed(piece)
