from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.text.truncate import Keep, count_bytes, count_lines, cut_text

TEXTS = st.text(alphabet=st.sampled_from("ab\nä€😀\r"), max_size=200)
KEEPS = st.sampled_from(get_args(Keep))


@given(TEXTS, st.integers(1, 20), st.integers(4, 100), KEEPS)
def test_what_is_kept_fits_and_is_a_prefix_and_a_suffix(
    text: str, lines: int, size: int, keep: Keep
) -> None:
    kept = cut_text(text, lines, size, keep)
    assert text.startswith(kept.head)
    assert text.endswith(kept.tail)
    assert count_bytes(kept.head + kept.tail) <= size
    assert count_lines(kept.head) + count_lines(kept.tail) <= lines
    assert kept.omitted_bytes == count_bytes(text) - count_bytes(kept.head) - count_bytes(kept.tail)


@given(TEXTS, KEEPS)
def test_what_fits_stays_whole(text: str, keep: Keep) -> None:
    kept = cut_text(text, count_lines(text), count_bytes(text), keep)
    assert (kept.head, kept.tail, kept.is_cut) == (text, "", False)


@given(st.lists(st.text(alphabet="xyz", max_size=5), min_size=10, max_size=60), KEEPS)
def test_lines_stay_whole_when_they_are_shorter_than_the_room(words: list[str], keep: Keep) -> None:
    text = "".join(f"{word}\n" for word in words)
    kept = cut_text(text, 9, 40, keep)
    assert not kept.head or kept.head.endswith("\n")
    assert not kept.tail or text[: len(text) - len(kept.tail)][-1:] in {"\n", ""}


@given(TEXTS, st.integers(1, 20), st.integers(4, 100))
def test_each_end_keeps_something_of_an_overlong_text(text: str, lines: int, size: int) -> None:
    for keep in ("head", "tail"):
        kept = cut_text(text, lines, size, keep)
        assert not text or kept.head or kept.tail


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)]
)
def test_lines_are_counted_as_editors_do(text: str, count: int) -> None:
    assert count_lines(text) == count


def test_a_single_line_of_50_mb_is_cut_inside() -> None:
    for keep in get_args(Keep):
        kept = cut_text("x" * 50_000_000, 2000, 1000, keep)
        assert len(kept.head or kept.tail) == 1000
        assert kept.omitted_bytes == 50_000_000 - 1000
