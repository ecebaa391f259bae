"""Text from anywhere, safe to print."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.terminal_text import inert, one_line

ANY = st.text(st.characters(codec=None))


def test_what_would_steer_a_terminal_is_shown_as_a_picture_of_itself() -> None:
    assert inert("\x1b]52;c;AAAA\x07") == "␛]52;c;AAAA␇"
    assert inert("a\x1b[2Jb\x7f\x9b") == "a␛[2Jb␡<U+009B>"
    assert inert("one\r\ntwo\tthree\n") == "one␍\ntwo\tthree\n"


def test_what_would_hide_or_turn_text_around_is_named() -> None:
    assert inert("a\u202eb\u2066c\u200bd\ufeff") == "a<U+202E>b<U+2066>c<U+200B>d<U+FEFF>"
    assert inert("\udcff") == "<U+DCFF>"


def test_ordinary_text_stays_as_it_is() -> None:
    words = "Grüße, 世界! 🙂 — naïve\n\t- ok"
    assert inert(words) == words


@given(text=ANY)
def test_nothing_inert_holds_a_control_or_a_surrogate(text: str) -> None:
    shown = inert(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u2028\u2029")
    assert inert(shown) == shown
    shown.encode()


@given(text=ANY, width=st.integers(0, 30))
def test_one_line_is_one_line_of_that_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert "\n" not in line
    assert len(line) <= max(width, 1)


def test_one_line_is_cut_with_an_ellipsis() -> None:
    assert one_line("a  b\n c", 10) == "a b c"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abcde…"
