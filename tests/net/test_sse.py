"""Tests of server-sent events, however the network splits them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.net.sse import EventTooLong, SseParser
from codeloop.schema.limits import MODEL_ANSWER

LINES = st.text(
    st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=12
)


STREAM = (
    b": a comment\n\n"
    b'data: {"a":1}\n\n'
    b'id: 7\ndata: {"b":"\xc3\xa4"}\n\n'
    b"event: x\nid: 8\ndata: one\ndata:two\n\n"
    b"id: none\ndata: three\r\n\r\n"
    b"id: 9\n\n"
    b"data: cut off"
)
FOUND = [(None, b'{"a":1}'), (7, b'{"b":"\xc3\xa4"}'), (8, b"one\ntwo"), (None, b"three")]


def feed(*chunks: bytes) -> list[bytes]:
    stream = SseParser(MODEL_ANSWER.value)
    return [data for chunk in chunks for data in stream.feed(chunk)]


@pytest.mark.slow
@given(
    st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=5),
    st.sampled_from(["\n", "\r", "\r\n"]),
    st.data(),
)
def test_any_split_and_any_line_end_give_the_same_events(
    events: list[list[str]], end: str, data: st.DataObject
) -> None:
    text = "".join(
        f": note{end}event: x{end}"
        + "".join(f"data: {line}{end}" for line in lines)
        + f"id: 1{end}{end}"
        for lines in events
    )
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    chunks = [raw[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert feed(*chunks) == ["\n".join(lines).encode() for lines in events]


def test_one_byte_at_a_time_keeps_characters_whole() -> None:
    raw = 'data: {"text":"größe 漢字 🎉"}\r\n\r\n'.encode()
    assert feed(*(raw[at : at + 1] for at in range(len(raw)))) == [
        '{"text":"größe 漢字 🎉"}'.encode()
    ]


def test_a_line_end_of_two_bytes_may_come_in_two_chunks() -> None:
    assert feed(b"data: one\r", b"\ndata: two\r", b"\n\r", b"\n", b"data: three\r\n\r\n") == [
        b"one\ntwo",
        b"three",
    ]
    # Only the first LF belongs to the CR of the chunk before: the second ends the event.
    assert feed(b"data: one\r", b"", b"\n\ndata: two\n\n") == [b"one", b"two"]
    assert feed(b"data: one\r", b"data: two\r", b"\n\ndata: three\n\n") == [b"one\ntwo", b"three"]
    # Nor is one dropped where the chunk before holds a CR, but does not end with it.
    assert feed(b"data: one\rdata: two", b"\n\ndata: three\n\n") == [b"one\ntwo", b"three"]


def test_comments_and_events_without_data_give_nothing() -> None:
    assert feed(b": keep-alive\n\n", b"event: ping\n\n", b"retry: 5\n\n\n\n", b"data\n\n") == []


def test_a_byte_order_mark_and_a_missing_blank_after_the_colon_are_allowed() -> None:
    assert feed(b"\xef\xbb\xbfdata:one\n\ndata:  two\n\n") == [b"one", b" two"]


def test_an_event_that_the_end_cuts_off_is_never_given() -> None:
    assert feed(b"data: one\n\ndata: tw") == [b"one"]


def test_an_endless_event_is_an_error_and_not_all_of_the_memory() -> None:
    stream = SseParser(MODEL_ANSWER.value)
    piece = b"x" * (1 << 22)
    for _ in range(MODEL_ANSWER.value // len(piece)):
        assert stream.feed(piece) == []
    with pytest.raises(EventTooLong):
        stream.feed(piece)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1_000])
def test_numbered_events_are_found_wherever_the_bytes_are_cut(size: int) -> None:
    parser = SseParser(1_000)
    found = [
        one
        for at in range(0, len(STREAM), size)
        for one in parser.feed_with_ids(STREAM[at : at + size])
    ]
    assert found == FOUND


def test_an_event_of_many_lines_without_an_end_is_given_up() -> None:
    parser = SseParser(1_000)
    for _ in range(5):
        assert len(parser.feed_with_ids(b"data: " + b"x" * 600 + b"\n\n")) == 1
    for _ in range(3):
        assert parser.feed_with_ids(b"data: " + b"x" * 300 + b"\n") == []
    with pytest.raises(EventTooLong):
        parser.feed_with_ids(b"data: " + b"x" * 300 + b"\n")
