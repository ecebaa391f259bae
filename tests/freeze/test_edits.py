"""Edits and patches of texts in which everything is alike: the loop turns,
and each comes to an end.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.freeze.ticker import check_loop_turns
from tests.tool.context import TestContext
from tests.tool.small_project import answer, small_project

EQUAL = "a\n" * 200_000
BRACES = "{\nxxxxxxxx\nyyyyyy\n}\n" * 40_000
SIMILAR = "".join(
    f"    value_{n} = compute(argument_{n}, {n * 7919 % 10_007})\n" for n in range(40_000)
)
NUMBERED = "".join(f"line {n}\n" for n in range(50_000))
BLOCK = "start\n" + "the same long line here\n" * 4_000 + "end\n"
ZEBRA = "".join(f"a{n}\nx{n % 150}\n" for n in range(10_000))

Case = tuple[str, str, str, bool]
EDITS: dict[str, Callable[[], Case]] = {
    "equal lines": lambda: (EQUAL, "a", "b", False),
    "equal lines, all of them": lambda: (EQUAL, "a\n", "b\n", True),
    "equal lines, indented otherwise": lambda: (
        "  " + EQUAL.replace("\n", "\n  "),
        " a\n" * 50,
        "b\n",
        False,
    ),
    "equal lines, all of them, indented otherwise": lambda: (
        EQUAL.replace("a", "  a"),
        " a\n a\n",
        "b\n",
        True,
    ),
    "equal lines, half of them": lambda: (EQUAL, "a\n" * 99_999 + "b\na\n", "b\n", False),
    "equal lines, half of them indented otherwise": lambda: (
        EQUAL.replace("a", " a"),
        "a\n" * 100_000,
        "b\n",
        False,
    ),
    "equal lines of a file with CRLF": lambda: (EQUAL.replace("\n", "\r\n"), "a\n", "b\nc\n", True),
    "equal lines with mixed ends": lambda: (EQUAL + "a\r\n", "a\n", "b\n", True),
    "one letter": lambda: ("a" * 4_000_000, "a", "bb", True),
    "half of a line of one letter": lambda: ("a" * 4_000_000, "a" * 2_000_000, "b", False),
    "a part of a line of one letter that is not there": lambda: (
        "a" * 8_000_000,
        "a" * 200_000 + "b",
        "c",
        False,
    ),
    "similar lines": lambda: (
        SIMILAR,
        "    value_99x = computed(argument_99x, 1)\n" * 40,
        "b\n",
        False,
    ),
    "long similar lines": lambda: (("ab" * 1_000 + "\n") * 20_000, "ba" * 990 + "c", "x", False),
    "braces around anything": lambda: (BRACES, "{\n" + "zzzzzz\n" * 2_000 + "}\n", "b\n", False),
    "long blocks between braces": lambda: (
        ("{\n" + "abcdefgh klmnop\n" * 2_000 + "}\n") * 40,
        "{\n" + "abcdefgh klmnoq\n" * 2_000 + "}\n",
        "b\n",
        False,
    ),
    "blocks with drifting ends": lambda: (
        BLOCK * 30,
        "strt\n" + "the same long line here\n" * 3_999 + "drift\nendd\n",
        "b\n",
        False,
    ),
    "words with blanks between them": lambda: ("a " * 2_000_000, "a  " * 500 + "b", "c", False),
    "words that end late": lambda: ("a " * 500_000, "a  " * 500 + "aa", "c", False),
    "brackets with blanks between them": lambda: ("( " * 500_000, "(  ( (\t( b", "c", False),
    "blanks": lambda: (" " * 2_000_000 + "x", "  y  z ", "c", False),
    "lines of blanks": lambda: ("\t\n" * 500_000 + "q", "\n\n \n z\n\n\n" * 1_000, "c", False),
    "escapes": lambda: (EQUAL, "a\\n" * 100_000, "z", False),
    "blank lines at the end": lambda: (
        "x\n" + "\n" * 300_000 + "y",
        "\n \t" * 100_000 + "x",
        "z",
        False,
    ),
    "dots": lambda: ("..." * 2_000_000 + "\na\n", "a\n", "b\n", False),
    "lines that end in dots": lambda: (
        "x\n# existing ...\n" * 100_000,
        "x\n",
        "# existing ...\n",
        True,
    ),
    "one line of 16 MB": lambda: ("ab" * 8_000_000, "abb", "c", False),
    "a new text of other lines": lambda: (ZEBRA, ZEBRA, ZEBRA.replace("a", "b"), False),
    "many depths": lambda: (
        "".join(" " * (n % 400) + "x\n" for n in range(4_000)),
        "".join("\t" * (n % 400) + "x\n" for n in range(4_000)),
        "".join(" \t" * (n % 400) + "y\n" for n in range(4_000)),
        False,
    ),
}


async def write_and_read(ctx: TestContext, content: str) -> None:
    """Write the file as it is before the edit, and read it, as an edit needs."""
    (ctx.workspace.root / "f.txt").write_text(content, newline="")
    await answer(ctx, "read", {"filePath": "f.txt"})


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
async def test_the_loop_turns_during_an_edit_of(name: str, tmp_path: Path) -> None:
    content, old, new, every = EDITS[name]()
    ctx = small_project(tmp_path)
    given = {"filePath": "f.txt", "oldString": old, "newString": new, "replaceAll": every}
    await check_loop_turns(lambda: answer(ctx, "edit", given), lambda: write_and_read(ctx, content))


def patched(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", "*** Update File: f.txt", *lines, "*** End Patch"])


PATCHES: dict[str, Callable[[], tuple[str, str]]] = {
    "blank lines": lambda: ("a\n", patched("@@", "-a", "\n" * 20_000, " x")),
    "blank lines in a unified diff": lambda: (
        "a\n",
        "--- f.txt\n+++ f.txt\n@@ x\n-a\n" + "\n" * 20_000 + "+x\n",
    ),
    "a here-document": lambda: ("a\n", "cat " + "<" * 100_000 + "\n\nx\nEOF"),
    "many hunks": lambda: (NUMBERED, patched(*(f"@@\n-line {n}\n+LINE {n}" for n in range(1_000)))),
    "many hunks that stand nowhere as they are": lambda: (
        NUMBERED,
        patched(*(f"@@\n-  line  {n}\n+LINE {n}" for n in range(300))),
    ),
    "many sections": lambda: (NUMBERED, patched(*(f"@@ line {n}" for n in range(500)), "-x", "+y")),
    "equal lines": lambda: (EQUAL, patched("@@", *["-a"] * 50_000, "+b")),
    "equal lines, indented otherwise": lambda: (EQUAL, patched("@@", *["-  a"] * 50_000, "+b")),
    "a section of one letter": lambda: ("a" * 4_000_000, patched("@@ a", "-b", "+c")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PATCHES)
async def test_the_loop_turns_during_a_patch_of(name: str, tmp_path: Path) -> None:
    content, patch = PATCHES[name]()
    ctx = small_project(tmp_path)
    await check_loop_turns(
        lambda: answer(ctx, "apply_patch", {"patchText": patch}),
        lambda: write_and_read(ctx, content),
    )


@pytest.mark.slow
async def test_the_loop_turns_during_many_edits_of_a_large_file(tmp_path: Path) -> None:
    ctx = small_project(tmp_path)
    edits: list[dict[str, Any]] = [
        {"oldString": f"  line  {n}\n  line  {n + 1}", "newString": "x", "replaceAll": True}
        for n in range(0, 240, 3)
    ]
    await check_loop_turns(
        lambda: answer(ctx, "multiedit", {"filePath": "f.txt", "edits": edits}),
        lambda: write_and_read(ctx, NUMBERED * 4),
    )


@pytest.mark.slow
async def test_a_text_that_stands_everywhere_is_refused_with_what_to_do(tmp_path: Path) -> None:
    ctx = small_project(tmp_path)
    (ctx.workspace.root / "f.txt").write_text(EQUAL)
    await answer(ctx, "read", {"filePath": "f.txt"})
    said, is_done = await answer(
        ctx, "edit", json.dumps({"filePath": "f.txt", "oldString": "a", "newString": "b"})
    )
    assert not is_done
    assert (
        "found at least 1000 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more. Add surrounding"
        in said
    )
    given = {"filePath": "f.txt", "oldString": "a\n" * 99_999 + "b\na\n", "newString": "b\n"}
    said, is_done = await answer(ctx, "edit", given)
    assert not is_done
    assert (
        "too many places like it to compare them all. Give the exact text, with lines that only it has."
        in said
    )
