"""Lines that come faster than they can be typed are a paste; a line with its Enter is sent."""

from collections.abc import Sequence

import pytest

from codeloop.tui.terminal.input.input_parser import InputParser
from codeloop.tui.terminal.input.paste_detector import PasteDetector

Pieces = Sequence[str | float]
"""What is read, and the seconds between two reads."""


def arrive(*pieces: str | float) -> list[tuple[str, str]]:
    """Feed pieces of input; return the parser, as the reading thread makes them."""
    parser, detector, now = InputParser(), PasteDetector(), 10.0
    found: list[tuple[str, str]] = []
    for piece in (*pieces, 1.0):
        if isinstance(piece, str):
            found += [(each.kind, each.text) for each in detector.detect(parser.parse(piece), now)]
            continue
        end = now + piece
        while (held := detector.compute_wait(now)) is not None and now + held <= end:
            now += held
            found += [(each.kind, each.text) for each in detector.flush()]
        now = end
        if piece > 0.12:
            found += [(each.kind, each.text) for each in detector.detect(parser.flush(), now)]
    return merged(found)


def merged(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join keys that follow each other: how they are cut does not matter."""
    joined: list[tuple[str, str]] = []
    for kind, text in found:
        if joined and kind == "keys" == joined[-1][0]:
            joined[-1] = ("keys", joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined


LINES = "".join(f"line {n}\r" for n in range(300))


@pytest.mark.parametrize(
    "pieces",
    [
        (LINES,),
        tuple(part for line in LINES.splitlines(keepends=True) for part in (line, 0.002)),
        tuple(part for letter in LINES[:200] for part in (letter, 0.001)),
        (LINES[:1400], 0.15, LINES[1400:2000], 0.1, LINES[2000:]),
        ("\tif x:\r\t\treturn\r",),
        ("one\r\r\rtwo\r",),
        ("\x1b[31mred\x1b[0m\r\x1b[1mbold\x1b[0m\r",),
    ],
)
def test_lines_that_come_at_once_are_one_paste(pieces: Pieces) -> None:
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    for colour in ("\x1b[31m", "\x1b[0m", "\x1b[1m"):
        text = text.replace(colour, "")
    found = arrive(*pieces)
    assert "".join(text for _, text in found) == text
    assert [kind for kind, _ in found][-1] == "paste"
    assert all("\r" not in text for kind, text in found if kind == "keys")


@pytest.mark.parametrize(
    ("pieces", "keys"),
    [
        (("mend the total\r",), "mend the total\r"),
        (("mend the total", 0.001, "\r"), "mend the total\r"),
        (("one\r", 0.02, "two\r"), "one\rtwo\r"),
        (("a\nb", 0.004, "\r"), "a\nb\r"),
        (("\r\r",), "\r\r"),
        (("text\r\x1b[A",), "text\r\x1b[A"),
        (("text\r\x18n",), "text\r\x18n"),
        (("\x1b[1;", 0.001, "5C"), "\x1b[1;5C"),
        (("ihello\x1b", 0.2, "x"), "ihello\x1bx"),
        (("\x1b\r",), "\x1b\r"),
    ],
)
def test_what_is_typed_stays_keys(pieces: Pieces, keys: str) -> None:
    assert arrive(*pieces) == [("keys", keys)]


def test_enter_behind_a_paste_sends_it() -> None:
    assert arrive("a\rb", 0.05, "\r") == [("paste", "a\rb"), ("keys", "\r")]


@pytest.mark.parametrize("stop", ["\x03", "\x1b", "\x1b[27u", "\x1b[99;5u"])
def test_escape_and_control_c_end_a_paste(stop: str) -> None:
    assert arrive(LINES, stop, 0.13) == [("keys", stop)]


def test_an_escape_in_the_midst_of_what_comes_is_no_letter_with_alt() -> None:
    assert arrive(LINES, "\x1b" + LINES) == [("keys", "\x1b"), ("paste", LINES)]
