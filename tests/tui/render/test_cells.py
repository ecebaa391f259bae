"""Text by cells: wrapped at words, folded anywhere, cut,
and never within a character as readers know it.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment

from codeloop.tui.render.cells import (
    cut_line,
    cut_path,
    expand_tabs,
    fold_line,
    truncate_text,
    wrap_line,
)
from codeloop.tui.render.graphemes import split_graphemes
from tests.tui.drawing import plain

FAMILY, FLAG, THUMB, ACCENT = "👩\u200d👩\u200d👧", "🇫🇷", "👍🏽", "e\u0301"
RIGHT_TO_LEFT = "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645"


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("one two three", 8, "one two\nthree"),
        ("one  two", 5, "one\ntwo"),
        ("abcdefgh ij", 4, "abcd\nefgh\nij"),
        ("  indented text", 10, "  indented\ntext"),
        ("検索の結果", 4, "検索\nの結\n果"),
        ("a 検索 b", 4, "a 検\n索 b"),
        (f"ab{FAMILY}c", 3, f"ab\n{FAMILY}c"),
        (RIGHT_TO_LEFT, 8, RIGHT_TO_LEFT.replace(" ", "\n")),
        ("", 5, ""),
    ],
)
def test_lines_are_wrapped_at_words(text: str, width: int, rows: str) -> None:
    assert plain(wrap_line([Segment(text)], width)) == rows


def test_folded_lines_keep_every_space() -> None:
    rows = fold_line([Segment("a  b"), Segment("  c")], 3)
    assert ["".join(segment.text for segment in row) for row in rows] == ["a  ", "b  ", "c"]


@pytest.mark.parametrize("char", [FAMILY, FLAG, THUMB, ACCENT])
def test_what_readers_see_as_one_is_one(char: str) -> None:
    assert [(char * 2)[start:end] for start, end, _ in split_graphemes(char * 2)] == [char, char]


def test_a_line_is_cut_with_an_ellipsis() -> None:
    assert plain([cut_line([Segment("one "), Segment("two")], 6)]) == "one t…"
    assert plain([cut_line([Segment("検索")], 4)]) == "検索"
    assert plain([cut_line([Segment("検索の")], 4)]) == "検…"
    assert truncate_text("検索", 3) == "検"
    assert cut_path("src/codeloop/a.py", 10) == "…loop/a.py"


def test_tabs_end_at_multiples_of_four_cells() -> None:
    assert expand_tabs("a\tb") == "a   b"
    assert expand_tabs("検\tb") == "検  b"


CHARS = st.sampled_from(["a", " ", "検", FAMILY, FLAG, THUMB, ACCENT, "\u0628"])


@pytest.mark.slow
@given(st.lists(CHARS, max_size=60), st.integers(4, 20))
def test_nothing_is_lost_or_too_wide(chars: list[str], width: int) -> None:
    text = "".join(chars)
    segments = [Segment(text[:7]), Segment(text[7:])]
    wrapped, folded = wrap_line(segments, width), fold_line(segments, width)
    for row in (*wrapped, *folded):
        assert cell_len("".join(segment.text for segment in row)) <= max(width, 8)
    assert "".join(segment.text for row in folded for segment in row) == text
    assert "".join(plain(wrapped).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "one three fifteen a-word-longer-than-a-row",
        "日本語 と english words é́ here",
        "  in  by two",
    ],
)
def test_no_row_ends_within_a_word_that_a_row_holds(text: str) -> None:
    for break_rows in (wrap_line, fold_line):
        half = len(text) // 2
        rows = [
            "".join(part.text for part in row)
            for row in break_rows([Segment(text[:half]), Segment(text[half:])], 12)
        ]
        assert all(cell_len(row) <= 12 for row in rows)
        whole = [word for word in text.split() if word.isascii() and len(word) <= 12]
        assert all(any(word in row.split() for row in rows) for word in whole), rows
    assert (
        "".join("".join(part.text for part in row) for row in fold_line([Segment(text)], 12))
        == text
    )
