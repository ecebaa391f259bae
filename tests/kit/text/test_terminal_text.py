"""Text from anywhere, safe to print."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.text.terminal_text import (
    escape_answer_controls,
    escape_controls,
    escape_json_controls,
    one_line,
)

ANY = st.text(st.characters(codec=None))


def test_what_would_steer_a_terminal_is_shown_as_a_picture_of_itself() -> None:
    assert escape_controls("\x1b]52;c;AAAA\x07") == "␛]52;c;AAAA␇"
    assert escape_controls("a\x1b[2Jb\x7f\x9b") == "a␛[2Jb␡<U+009B>"
    assert escape_controls("one\r\ntwo\tthree\n") == "one␍\ntwo\tthree\n"


def test_what_would_hide_or_turn_text_around_is_named() -> None:
    assert escape_controls("a\u202eb\u2066c\u200bd\ufeff") == "a<U+202E>b<U+2066>c<U+200B>d<U+FEFF>"
    assert escape_controls("\udcff") == "<U+DCFF>"


INVISIBLE = (
    0x00AD,
    0x034F,
    0x061C,
    0x115F,
    0x1160,
    0x17B4,
    0x180B,
    0x180E,
    0x2028,
    0x2029,
    0x2065,
    0x2800,
    0x3164,
    0x10EEEE,
)
SELECTORS = (
    *range(0xFE00, 0xFE10),
    *range(0xFFF0, 0xFFFC),
    0xFFA0,
    0x1D173,
    *range(0xE0000, 0xE1000),
)


def test_every_format_and_invisible_character_is_named() -> None:
    formats = (
        code for code in range(0x110000) if unicodedata.category(chr(code)) in {"Cf", "Zl", "Zp"}
    )
    for code in {*INVISIBLE, *SELECTORS, *formats}:
        assert escape_controls(f"a{chr(code)}b") == f"a<U+{code:04X}>b"


def test_json_is_escaped_to_the_same_values() -> None:
    text = json.dumps("a\U000e0041\u202e\u00ad", ensure_ascii=False)
    assert escape_json_controls(text) == r'"a\udb40\udc41\u202e\u00ad"'
    assert json.loads(escape_json_controls(text)) == json.loads(text)


def test_an_answer_keeps_pictures_and_letters_that_are_joined() -> None:
    words = "👨‍👩‍👧 👩🏽‍💻 ❤️ 1️⃣ ⚠️ 🏳️‍🌈 می‌خواهم क्‍ष"
    assert escape_answer_controls(words) == words
    assert "<U+200D>" in escape_controls(words)
    assert (
        escape_answer_controls("a\u200db \u200b \ufe0f 🏴\U000e0067")
        == "a<U+200D>b <U+200B> <U+FE0F> 🏴<U+E0067>"
    )
    pieces = [*words]
    assert (
        "".join(
            escape_answer_controls(one, before)
            for one, before in zip(pieces, ["", *pieces], strict=False)
        )
        == words
    )


@given(text=ANY, before=ANY)
def test_an_answer_holds_nothing_that_turns_text_around(text: str, before: str) -> None:
    shown = escape_answer_controls(text, before)
    assert not [
        c
        for c in shown
        if unicodedata.category(c) in {"Cc", "Cs", "Cf"} and c not in "\n\t\u200c\u200d"
    ]


def test_marks_beyond_what_any_language_has_are_named() -> None:
    flood = "c" + "\u0301" * 300
    for shown in (escape_controls(flood), escape_answer_controls(flood)):
        assert shown.startswith("c" + "\u0301" * 8 + "<U+0301>")
        assert shown.count("\u0301") == 8
    assert escape_answer_controls("\u0301", "c" + "\u0301" * 8) == "<U+0301>"
    assert escape_controls("บ้านที่ שָׁלוֹם Việt") == "บ้านที่ שָׁלוֹם Việt"


def test_ordinary_text_stays_as_it_is() -> None:
    words = "Grüße, 世界! 🙂 — naïve\n\t- ok"
    assert escape_controls(words) == words


@given(text=ANY)
def test_nothing_inert_holds_a_control_or_a_surrogate(text: str) -> None:
    shown = escape_controls(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
    assert not set(shown) & set(
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u2028\u2029"
    )
    assert escape_controls(shown) == shown
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


def test_a_title_may_hold_a_picture_of_several_characters() -> None:
    assert (
        one_line("the 👩\u200d👧\n\u202e", 40, escape_answer_controls) == "the 👩\u200d👧 <U+202E>"
    )
    assert one_line("the 👩\u200d👧", 40) == "the 👩<U+200D>👧"
