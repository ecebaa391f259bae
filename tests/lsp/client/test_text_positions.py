"""Changes between texts, as the protocol has them: applied by a server,
they lead from the one to the other.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.lsp.client.connection import InvalidStream, MessageReader, encode_message
from codeloop.lsp.client.text_positions import (
    Encoding,
    count_units,
    find_change,
    find_index,
    split_lines,
)

TEXTS = st.lists(
    st.sampled_from(["a", "bé", "😀", "\n", "\r\n", "\r", "x y", "\u2028"]), max_size=12
).map("".join)
ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]


def applied(before: str, encoding: Encoding, event: dict[str, Any]) -> str:
    """Apply a change as a server does."""
    lines = [*split_lines(before), ""]
    span = event["range"]

    def offset(place: dict[str, int]) -> int:
        line = place["line"]
        return sum(map(len, lines[:line])) + find_index(lines[line], place["character"], encoding)

    return before[: offset(span["start"])] + str(event["text"]) + before[offset(span["end"]) :]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(before=TEXTS, after=TEXTS)
def test_a_change_leads_from_one_text_to_the_next(
    encoding: Encoding, before: str, after: str
) -> None:
    assert applied(before, encoding, find_change(before, after, encoding).event) == after


def test_only_the_lines_that_differ_are_sent() -> None:
    before = "".join(f"line {number}\n" for number in range(1_000))
    change = find_change(before, before.replace("line 500\n", "other\n"), "utf-16")
    assert (change.first, change.end, change.text) == (500, 501, "other\n")


@pytest.mark.parametrize(("encoding", "columns"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_columns_are_counted_in_units(encoding: Encoding, columns: int) -> None:
    assert count_units("é😀", encoding) == columns
    assert find_index("é😀x", columns, encoding) == 2
    assert find_index("é😀x", 99, encoding) == 3


@given(st.lists(st.integers(1, 40), max_size=30))
def test_messages_are_found_however_the_stream_is_cut(cuts: list[int]) -> None:
    stream = b"hello\n" + b"".join(
        encode_message({"id": number, "text": "é" * number}) for number in range(5)
    )
    reader, found, at = MessageReader(), list[int](), 0
    for cut in [*cuts, len(stream)]:
        found += [message["id"] for message in reader.feed(stream[at : at + cut])]
        at += cut
    assert found == [0, 1, 2, 3, 4]


def test_the_fields_of_a_header_come_in_any_order() -> None:
    message = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n" + encode_message(
        {"id": 1}
    )
    reader = MessageReader()
    assert sum(len(list(reader.feed(message))) for _ in range(3000)) == 3000


@pytest.mark.parametrize(
    "data", [b"x" * 70_000, b"Content-Length: 99999999999\r\n\r\n", b"Content-Length: 2\r\n\r\n[]"]
)
def test_what_is_not_the_protocol_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidStream):
        list(MessageReader().feed(data))
