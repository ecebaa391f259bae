"""What is found for a few letters, and what comes first."""

import pytest

from codeloop.tui.dialogs.parts.pick_list import FuzzyIndex, find_match

NAMES = [
    "src/store/outbox.py",
    "src/out.py",
    "Outline of the store",
    "about",
    "gpt-4o mini",
    "İstanbul",
]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [0, 1, 2, 3, 4, 5]),
        ("out", [2, 1, 0, 3]),
        ("OUT store", [2, 0]),
        ("stout", [0]),
        ("gpt4", [4]),
        ("gpt-4o", [4]),
        ("stanbul", [5]),
        ("xyz", []),
    ],
)
def test_words_are_found_by_their_letters_in_order(query: str, found: list[int]) -> None:
    assert FuzzyIndex(NAMES).search(query) == found


def test_what_is_typed_letter_by_letter_finds_what_the_whole_word_finds() -> None:
    index = FuzzyIndex(NAMES)
    for query in ("o", "ou", "out", "out s", "out", "g", ""):
        assert index.search(query) == FuzzyIndex(NAMES).search(query)


def test_the_letters_that_were_found_are_known() -> None:
    assert find_match("src/out.py", "out") == {4, 5, 6}
    assert find_match("gpt-4o", "gpt4") == {0, 1, 2, 4}
    assert find_match("about", "xyz") == set()
