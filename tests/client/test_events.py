"""Server-sent events: however the network cuts them, the same events come out."""

import pytest

from codeloop.client import events
from codeloop.client.events import EventLines, TooLong
from codeloop.schema.limits import Limit

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


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1_000])
def test_events_are_found_wherever_the_bytes_are_cut(size: int) -> None:
    lines = EventLines()
    found = [one for at in range(0, len(STREAM), size) for one in lines.feed(STREAM[at : at + size])]
    assert found == FOUND


def test_an_event_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "CLIENT_EVENT", Limit("client.event", 1_000, "bytes", ""))
    lines = EventLines()
    for _ in range(5):
        assert len(lines.feed(b"data: " + b"x" * 600 + b"\n\n")) == 1
    for _ in range(3):
        assert lines.feed(b"data: " + b"x" * 300 + b"\n") == []
    with pytest.raises(TooLong):
        lines.feed(b"data: " + b"x" * 300 + b"\n")
