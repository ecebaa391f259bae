"""Parses unified diffs into files, hunks and lines."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.tui.render.cells import expand_tabs

DiffSign = Literal[" ", "+", "-"]
# Matches `@@ -12,5 +12,7 @@`; a count that is left out is 1.
_HUNK_HEADER = r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@"


class DiffLine(Struct, frozen=True):
    """A line of a diff: its sign, its number in the old and the new file (0: not in that file),
    and its text.

    Control characters of the text are escaped.
    """

    sign: DiffSign
    old: int
    new: int
    text: str


class ChangeCounts(NamedTuple):
    """How many lines are added and deleted."""

    additions: int
    deletions: int


def sum_counts(counts: Iterable[ChangeCounts]) -> ChangeCounts:
    """Return the counts of several files together."""
    additions = deletions = 0
    for each in counts:
        additions += each.additions
        deletions += each.deletions
    return ChangeCounts(additions, deletions)


class PatchedFile(Struct, frozen=True):
    """The changes of one file, as hunks of lines.
    `path`: as the patch names it, without `a/` or `b/`.
    """

    path: str
    hunks: tuple[tuple[DiffLine, ...], ...]

    @property
    def counts(self) -> ChangeCounts:
        """How many lines of the file are added and deleted."""
        signs = [line.sign for hunk in self.hunks for line in hunk]
        return ChangeCounts(additions=signs.count("+"), deletions=signs.count("-"))


def parse_patches(text: str) -> Iterator[PatchedFile]:
    """Yield the files of a unified diff, in order; none for a text that is not a diff."""
    path, hunks = "", list[tuple[DiffLine, ...]]()
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if (match := compile_once(_HUNK_HEADER).match(line)) is not None:
            hunk, at = _parse_hunk(lines, at + 1, [int(part or 1) for part in match.groups()])
            hunks.append(hunk)
            continue
        if line.startswith(("Index: ", "diff --git ", "--- ")) and hunks:
            yield PatchedFile(path, tuple(hunks))
            path, hunks = "", []
        if line.startswith("Index: "):
            # Codeloop's own diffs name files in this line;
            # the names in the lines below it are ignored then.
            path = line[len("Index: ") :]
        elif (
            line.startswith(("--- ", "+++ ")) and not path and not line[4:].startswith("/dev/null")
        ):
            name = line[4:].partition("\t")[0]
            path = re.sub("^[ab]/", "", name)
        at += 1
    if hunks:
        yield PatchedFile(path, tuple(hunks))


def _parse_hunk(lines: list[str], at: int, ranges: list[int]) -> tuple[tuple[DiffLine, ...], int]:
    """Return the lines of a hunk, and the index of the line after it.

    `ranges`: the first line and the number of lines in the old file, then those in the new file.
    """
    old_line, old_count, new_line, new_count = ranges
    diff_lines: list[DiffLine] = []
    # The counts of the header end a hunk: a removed line such as `-- x` looks
    # like the header of a file.
    while at < len(lines) and (old_count > 0 or new_count > 0 or lines[at].startswith("\\")):
        sign, text = lines[at][:1], expand_tabs(escape_controls(lines[at][1:].rstrip("\r")))
        at += 1
        match sign:
            case "+":
                diff_lines.append(DiffLine("+", 0, new_line, text))
                new_line, new_count = new_line + 1, new_count - 1
            case "-":
                diff_lines.append(DiffLine("-", old_line, 0, text))
                old_line, old_count = old_line + 1, old_count - 1
            # Programs that strip blanks at the ends of lines also strip the space of an empty line.
            case " " | "":
                diff_lines.append(DiffLine(" ", old_line, new_line, text))
                old_line, new_line, old_count, new_count = (
                    old_line + 1,
                    new_line + 1,
                    old_count - 1,
                    new_count - 1,
                )
            # Such as `\ No newline at end of file`.
            case "\\":
                pass
            case _:
                return tuple(diff_lines), at - 1
    return tuple(diff_lines), at
