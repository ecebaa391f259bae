"""Diffs taken apart, compared by words, and drawn on one side or two."""

from typing import Any

import pytest

from codeloop.kit.text.diff import make_unified_diff
from codeloop.tui.render.diff.diff_renderer import DiffRenderer, compare_words
from codeloop.tui.render.diff.patch import parse_patches
from codeloop.tui.render.diff.quoted_diff import draw_quoted_diff
from tests.tui.drawing import canvas, check, plain, styled

OLD = "def f():\n    return one\n\nlast\n"
NEW = "def f():\n    return two\n    more\n\nlast\n"


def test_a_quoted_diff_of_one_file_names_it_where_that_is_wanted() -> None:
    patch = make_unified_diff("/p/a.py", OLD, NEW).patch
    named = plain(draw_quoted_diff(patch, canvas(40), names_one=True)).split("\n")
    assert "a.py  +2 -1" in named[0]
    assert "a.py" not in plain(draw_quoted_diff(patch, canvas(40)))


def drawn(old: str, new: str, width: int = 40, **given: Any) -> str:
    patch = next(parse_patches(make_unified_diff("/p/a.py", old, new).patch))
    rows = list(DiffRenderer(patch, canvas(width, **given), width).draw())
    check(rows, width)
    return plain(rows)


def test_one_below_the_other() -> None:
    assert drawn(OLD, NEW) == (
        "1   def f():\n2 -     return one\n2 +     return two\n3 +     more\n4\n5   last"
    )


def test_side_by_side_where_there_is_room_or_it_is_wanted() -> None:
    assert drawn(OLD, NEW, 60, diff="split").split("\n") == [
        "1   def f():                  1   def f():",
        "2 -     return one            2 +     return two",
        "                              3 +     more",
        "3                             4",
        "4   last                      5   last",
    ]
    assert (
        drawn(OLD, NEW, 120)
        == drawn(OLD, NEW, 120, diff="split")
        != drawn(OLD, NEW, 120, diff="unified")
    )
    assert drawn("", NEW, 120) == drawn("", NEW, 120, diff="unified"), (
        "a new file has one side only"
    )


def test_hunks_are_parted_and_long_lines_go_on_below() -> None:
    lines = [f"line {at}" for at in range(30)]
    rows = drawn("\n".join(lines), "\n".join(["x" * 50, *lines[1:29], "y"]))
    assert "\n ⋯\n" in rows
    assert " 1 + " + "x" * 35 + "\n     " + "x" * 15 in rows


def test_changed_words_stand_out_and_code_has_its_colours() -> None:
    patch = next(parse_patches(make_unified_diff("/p/a.py", OLD, NEW).patch))
    rows = styled(DiffRenderer(patch, canvas(40), 40).draw()).split("\n")
    assert "{syntax_keyword on diff_removed_bg}return" in rows[1]
    assert "{syntax_variable on diff_highlight_removed}one" in rows[1]
    assert "{diff_added on diff_added_bg} + " in rows[2]


def test_nothing_in_a_diff_steers_the_terminal() -> None:
    rows = drawn("a\x1b[2J\n", "b\x07\ttab\n")
    assert "\x1b" not in rows
    assert "b␇  tab" in rows


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("return one", "return two", (["one"], ["two"])),
        ("f(a, b)", "f(a, b, c)", ([], [", c"])),
        ("result = some value(x)", "result = other thing(x)", (["some value"], ["other thing"])),
        ("nothing", "alike", ([], [])),
        ("x" * 500, "x" * 499, ([], [])),
        ("same", "same", ([], [])),
    ],
)
def test_words_that_differ(old: str, new: str, words: tuple[list[str], list[str]]) -> None:
    before, after = compare_words(old, new)
    assert ([old[a:z] for a, z in before], [new[a:z] for a, z in after]) == words


def test_a_patch_of_git_and_what_is_none() -> None:
    text = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n--- a\n+++ b\n\\ No newline\n"
    patch = next(parse_patches(text))
    assert (patch.path, patch.counts) == ("x.py", (1, 1))
    assert [line.text for line in patch.hunks[0]] == ["-- a", "++ b"]
    assert list(parse_patches("not a diff")) == []


def test_several_files() -> None:
    text = (
        make_unified_diff("/p/a.py", "a\n", "b\n").patch
        + make_unified_diff("/p/b.py", "", "c\n").patch
    )
    assert [(patch.path, patch.counts) for patch in parse_patches(text)] == [
        ("/p/a.py", (1, 1)),
        ("/p/b.py", (1, 0)),
    ]


@pytest.mark.parametrize("diff", ["unified", "split"])
def test_the_largest_number_has_room_wherever_it_is(diff: str) -> None:
    patch = next(parse_patches("Index: a.py\n@@ -9,3 +100,1 @@\n kept\n-one\n-two\n"))
    rows = list(DiffRenderer(patch, canvas(60, diff=diff), 60).draw())
    check(rows, 60)
    assert {plain([row]).index("-") for row in rows[1:]} == {4}
