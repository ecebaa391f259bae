"""The newest output, by position."""

from collections.abc import Iterator

from codeloop.workspace.terminal.terminal_output import Scrollback


def in_pieces(kept: Scrollback, position: int, most: int) -> Iterator[str]:
    while position < kept.end:
        text, position = kept.read(position, most)
        yield text


def test_positions_count_the_units_that_the_clients_count() -> None:
    kept = Scrollback(8)
    kept.write("a\U0001f600b")
    assert (kept.start, kept.end) == (0, 4)
    assert kept.read(0, 2) == ("a\U0001f600", 3)
    assert list(in_pieces(kept, 0, 1)) == ["a", "\U0001f600", "b"]
    kept.write("123456")
    assert (kept.start, kept.end) == (2, 10)
    assert kept.read(0, 99) == ("\ufffdb123456", 10)
    assert kept.read(99, 5) == ("", 10)
