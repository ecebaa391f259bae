"""Wildcards against a naive oracle, and the two questions about partly known texts."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS, covers, is_within, matches, overlaps

TEXTS = st.text("ab *?/\n", max_size=8)
PATTERNS = st.text("ab */?", max_size=6)
PARTLY = st.text("ab " + ANY_TEXT + ANY_WORDS, max_size=5)
FILLS = ("", "a", "b", " ", "ab", " a b")


def naive(text: str, pattern: str) -> bool:
    if pattern.endswith(" *") and naive_whole(text, pattern[:-2]):
        return True
    return naive_whole(text, pattern)


def naive_whole(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(naive_whole(text[skip:], pattern[1:]) for skip in range(len(text) + 1))
    return bool(text) and pattern[0] in {"?", text[0]} and naive_whole(text[1:], pattern[1:])


def instances(text: str) -> list[str]:
    """Return some of the texts that a partly known one stands for."""
    found = [""]
    for char in text:
        if char == ANY_TEXT:
            found = [one + fill for one in found for fill in FILLS]
        elif char == ANY_WORDS:
            found = [one + fill for one in found for fill in ("", *(" " + fill for fill in FILLS))]
        else:
            found = [one + char for one in found]
    return found[:2000]


@given(TEXTS, PATTERNS)
def test_agrees_with_a_naive_reading(text: str, pattern: str) -> None:
    assert matches(text, pattern) == naive(text, pattern)


@given(TEXTS)
def test_a_star_matches_everything_and_a_plain_text_itself(text: str) -> None:
    assert matches(text, "*")
    assert matches(text, text.replace("*", "?"))


@given(TEXTS, PATTERNS)
def test_on_known_texts_all_three_agree(text: str, pattern: str) -> None:
    assert overlaps(text, pattern) == covers(text, pattern) == matches(text, pattern)


@given(PARTLY, PATTERNS)
def test_a_text_that_could_match_overlaps(text: str, pattern: str) -> None:
    if any(matches(one, pattern) for one in instances(text)):
        assert overlaps(text, pattern)


@given(PARTLY, PATTERNS)
def test_a_covered_text_matches_whatever_it_turns_out_to_be(text: str, pattern: str) -> None:
    if covers(text, pattern):
        assert all(matches(one, pattern) for one in instances(text))


@pytest.mark.parametrize(
    ("text", "pattern", "could", "must"),
    [
        (ANY_TEXT, "*", True, True),
        (ANY_TEXT, "rm *", True, False),
        (f"git{ANY_WORDS}", "git *", True, True),
        (f"git{ANY_WORDS}", "git push *", True, False),
        (f"git{ANY_WORDS} origin", "git push *", True, False),
        (f"echo {ANY_TEXT}", "echo *", True, True),
        (f"echo {ANY_TEXT}", "rm *", False, False),
        (f"echo {ANY_TEXT}", "echo secret*", True, False),
        (f"rm build/{ANY_TEXT}", "rm /*", False, False),
        (f"a{ANY_TEXT}", "a?c", True, False),
        (f"echo{ANY_WORDS}", "echo", True, False),
    ],
)
def test_partly_known_texts(text: str, pattern: str, could: bool, must: bool) -> None:
    assert (overlaps(text, pattern), covers(text, pattern)) == (could, must)


@pytest.mark.parametrize(
    ("pattern", "offered", "is_inside"),
    [
        ("git push *", "git push *", True),
        ("git push origin *", "git push *", True),
        ("git push", "git push *", True),
        ("git *", "git push *", False),
        ("git push*", "git push *", False),
        ("*", "git push *", False),
        ("src/*", "*", True),
        ("gi? push *", "git push *", False),
        ("<read-only>", "git push *", False),
    ],
)
def test_a_pattern_within_another_one_allows_no_more(
    pattern: str, offered: str, is_inside: bool
) -> None:
    assert is_within(pattern, ["npm publish *", offered]) == is_inside


def test_a_hostile_pattern_on_a_long_text_takes_no_time() -> None:
    start = time.process_time()
    assert not matches("a" * 60_000, "*a" * 30 + "*b")
    assert not overlaps("a" * 2_000 + "c", "*a" * 30 + "*b")
    assert time.process_time() - start < 10
