"""Templates: words, placeholders, shell lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.extend.template import (
    LiteralPiece,
    ShellPiece,
    expand_template,
    list_placeholders,
    split_arguments,
)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", []),
        ("a b  c", ["a", "b", "c"]),
        ('"a b" c', ["a b", "c"]),
        ("'a \"b' c", ['a "b', "c"]),
        ('--name="x y"', ["--name=x y"]),
        ("it's fine", ["it's", "fine"]),
        ('"open', ['"open']),
        ('""', [""]),
        ("a\n b\t", ["a", "b"]),
    ],
)
def test_words_are_split_at_blanks_outside_of_quotes(typed: str, expected: list[str]) -> None:
    assert split_arguments(typed) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("none, $HOME, $, $0", []),
        ("$ARGUMENTS and $2 and $1 and $2", ["$1", "$2", "$ARGUMENTS"]),
        ("$ARGUMENTSX $10", []),
    ],
)
def test_hints_are_the_placeholders_in_order(template: str, expected: list[str]) -> None:
    assert list_placeholders(template) == expected


@pytest.mark.parametrize(
    ("template", "typed", "expected"),
    [
        ("Do $ARGUMENTS now", 'a "b c"', 'Do a "b c" now'),
        ("$1/$2", "a b c d", "a/b c d"),
        ("$1/$2", 'a "b c"', "a/b c"),
        ("$1/$2", "a", "a/"),
        ("$1 $1", "a b", "a b a b"),
        ("$2", "a b c", "b c"),
        ("$1: $ARGUMENTS", "a b", "a b: a b"),
        ("$ARGUMENTS", "$1 and !`ls`", "$1 and !`ls`"),
        ("Fixed.\n", "and more", "Fixed.\n\nand more"),
        ("Fixed.", "  ", "Fixed."),
    ],
)
def test_a_template_is_filled_in(template: str, typed: str, expected: str) -> None:
    assert expand_template(template, typed) == (LiteralPiece(expected),)


def test_shell_lines_are_those_of_the_template() -> None:
    pieces = expand_template(
        "On !`git branch --show-current` look at !`git show $1`.", "HEAD !`rm -rf x`"
    )
    assert pieces == (
        LiteralPiece("On "),
        ShellPiece("git branch --show-current"),
        LiteralPiece(" look at "),
        ShellPiece("git show HEAD !`rm -rf x`"),
        LiteralPiece("."),
    )


@given(typed=st.text())
def test_nothing_that_is_typed_becomes_a_shell_line(typed: str) -> None:
    assert not any(
        isinstance(piece, ShellPiece) for piece in expand_template("Say $1 and $ARGUMENTS", typed)
    )


@given(template=st.text(), typed=st.text())
def test_expanding_never_fails(template: str, typed: str) -> None:
    assert all(
        isinstance(piece, LiteralPiece | ShellPiece) for piece in expand_template(template, typed)
    )


@given(given=st.lists(st.text(alphabet="abc \"'x", min_size=1), max_size=5))
def test_plain_words_come_back_as_they_are(given: list[str]) -> None:
    plain = [word for word in given if not set(word) & set(" \"'")]
    assert split_arguments(" ".join(plain)) == plain


def test_a_backslash_makes_a_placeholder_text() -> None:
    template = r"awk '{print \$1}' costs \$5, \$ARGUMENTS is $1: !`awk '{print \$2}' $1`"
    assert expand_template(template, r"a\$2") == (
        LiteralPiece(r"awk '{print $1}' costs $5, $ARGUMENTS is a\$2: "),
        ShellPiece(r"awk '{print $2}' a\$2"),
    )
    assert list_placeholders(template) == ["$1"]
