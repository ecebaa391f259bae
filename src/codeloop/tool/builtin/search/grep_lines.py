"""Selects the lines that `grep` shows: whole functions around matches,
and a fair share of the output for each file. Writes them with their numbers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.text.truncate import share_fairly
from codeloop.schema.bounds.outlines import (
    OUTLINED_FILE,
    SEARCH_BLOCK_LINES,
    SEARCH_WHOLE_BLOCK_LINES,
)
from codeloop.schema.limits import READ_LINE, SEARCH_RESULTS
from codeloop.schema.wire import replace
from codeloop.workspace.files.encoding import NotText, decode_text
from codeloop.workspace.files.safe_open import read_file
from codeloop.workspace.search.code_blocks import CodeBlock, find_enclosing_block, list_blocks
from codeloop.workspace.search.grep_query import FileMatches, GrepResult, MatchLine

# The number of a line, and separators.
_LINE_OVERHEAD_BYTES = 8
# A run of so many lines that the model knows is referred to by its numbers;
# a shorter one is shown again.
_MIN_REPEATED_LINES = 4
# Shown before and after a match in a function that is too long to be shown whole.
_CONTEXT_LINES = 2
# The same in one that is shorter, but long; the name of a function stands in so many
# lines from its first one.
_BLOCK_CONTEXT_LINES = 8
_HEAD_LINES = 3
# In a file with more matches, a match in such a function is shown without these.
_MAX_MATCHES_WITH_CONTEXT = 20
# How far below a line of a comment the function that it belongs to is searched.
_MAX_COMMENT_LINES = 60
# Matches the start of a line of a comment, or of a decorator.
_COMMENT_START = r"\s*(?:\*|/\*|//|#|--|@)"
# The bytes that are reserved for a file's heading.
_HEADING_BYTES = 100
_READ_BEFORE_NOTE = "as you read them above"


class KnownLine(NamedTuple):
    """A line that the model has seen. `note`: says where, such as "as you read them above";
    empty: it is unknown.
    """

    text: str
    note: str


_UNKNOWN_LINE = KnownLine("", "")


def show_blocks(result: GrepResult, lines_read: Mapping[Path, Mapping[int, str]]) -> GrepResult:
    """Return the result with each match widened to the function around it, unless that is too long.

    `lines_read`: the lines of each file that the session has read, by number;
    the result refers to them.
    """
    files = [
        _widen_to_blocks(each, lines_read.get(each.path, {}))
        for each in result.files[: SEARCH_RESULTS.value]
    ]
    return replace(result, files=files)


def _widen_to_blocks(hits: FileMatches, lines_read: Mapping[int, str]) -> FileMatches:
    """Return the matches of one file with the functions around them;
    a file that can't be parsed stays as it is.
    """
    try:
        if hits.path.stat().st_size > OUTLINED_FILE.value:
            return hits
        text = decode_text(read_file(hits.path, OUTLINED_FILE.value).data).content
    except (OSError, NotText, ValueError):
        return hits
    blocks, lines = list_blocks(text, hits.path.suffix), text.split("\n")
    matches = {line.number for line in hits.lines if line.is_match}
    texts = {line.number: line.text for line in hits.lines}
    for number in sorted(matches):
        block = find_enclosing_block(blocks, number, SEARCH_BLOCK_LINES.value)
        shown_numbers: Iterable[int] = ()
        if block is not None:
            shown_numbers = _list_shown_of_block(block, lines, number)
        elif len(matches) <= _MAX_MATCHES_WITH_CONTEXT and (
            start := _find_function_start(blocks, lines, number)
        ):
            context = range(
                max(number - _CONTEXT_LINES, 1), min(number + _CONTEXT_LINES, len(lines)) + 1
            )
            shown_numbers = (start, *context)
        for each in shown_numbers:
            texts.setdefault(each, lines[each - 1].rstrip("\r")[: READ_LINE.value])
    match_lines = [MatchLine(number, texts[number], number in matches) for number in sorted(texts)]
    known = {number: KnownLine(text, _READ_BEFORE_NOTE) for number, text in lines_read.items()}
    return FileMatches(hits.path, hits.matches, [*shorten_known_lines(match_lines, known)])


def _list_shown_of_block(block: CodeBlock, lines: Sequence[str], number: int) -> Sequence[int]:
    """Return the lines to show of the function around a match: all if it is short,
    or if the match is its head.
    """
    last = min(block.last_line, len(lines))
    is_short = last - block.first_line < SEARCH_WHOLE_BLOCK_LINES.value
    is_head = (
        number - block.first_line <= _HEAD_LINES
        and block.name.rpartition(".")[2] in lines[number - 1]
    )
    if is_short or is_head:
        return range(block.first_line, last + 1)
    around = range(
        max(number - _BLOCK_CONTEXT_LINES, block.first_line + 1),
        min(number + _BLOCK_CONTEXT_LINES, last) + 1,
    )
    return (block.first_line, *around)


def _find_function_start(
    blocks: Sequence[CodeBlock], lines: Sequence[str], number: int
) -> int | None:
    """Return the number of the first line of the function that a line belongs to;
    None if it is outside of all.

    A line of the comment or the decorators above a function belongs to that function.
    """
    for below in range(number, min(number + _MAX_COMMENT_LINES, len(lines) + 1)):
        if not re.match(_COMMENT_START, lines[below - 1]):
            if below > number and any(each.first_line == below for each in blocks):
                return below
            break
    block = find_enclosing_block(blocks, number, len(lines) + 1)
    return None if block is None else block.first_line


def shorten_known_lines(
    lines: Sequence[MatchLine], known: Mapping[int, KnownLine]
) -> Iterator[MatchLine]:
    """Yield the lines, with each long run of lines that the model knows replaced by one line,
    of the number 0.

    That line is a reference such as `(10-25 as you read them above)`.
    Lines that match are always shown.
    `known`: by number.
    """
    run: list[MatchLine] = []
    run_note = ""
    for line in lines:
        known_line = _UNKNOWN_LINE if line.is_match else known.get(line.number, _UNKNOWN_LINE)
        note = known_line.note if line.text == known_line.text else ""
        if run and not (note == run_note and line.number == run[-1].number + 1):
            yield from _refer_to_run(run, run_note)
            run = []
        if note:
            run.append(line)
            run_note = note
        else:
            yield line
    yield from _refer_to_run(run, run_note)


def _refer_to_run(run: Sequence[MatchLine], note: str) -> Sequence[MatchLine]:
    """Return the line that stands for a run of known lines; a short run as it is."""
    if len(run) < _MIN_REPEATED_LINES:
        return run
    return [MatchLine(0, f"({run[0].number}-{run[-1].number} {note})", is_match=False)]


def share_lines(files: Sequence[FileMatches], max_bytes: int) -> list[list[MatchLine]]:
    """Return the lines to show of each file: they share SEARCH_RESULTS matches
    and `max_bytes` fairly.
    """
    counts = share_fairly(
        [sum(line.is_match for line in hits.lines) for hits in files], SEARCH_RESULTS.value
    )
    lines_by_file = [
        _take_matches(hits.lines, count) for hits, count in zip(files, counts, strict=True)
    ]
    max_bytes -= _HEADING_BYTES * len(files)
    sizes = share_fairly([sum(map(_measure, lines)) for lines in lines_by_file], max(max_bytes, 0))
    return [_take_bytes(lines, size) for lines, size in zip(lines_by_file, sizes, strict=True)]


def _measure(line: MatchLine) -> int:
    """Return how many bytes a line takes in a result."""
    return len(line.text.encode(errors="replace")) + _LINE_OVERHEAD_BYTES


def _take_matches(lines: Sequence[MatchLine], count: int) -> list[MatchLine]:
    """Return the lines up to the match that follows the first `count` matches."""
    for index, line in enumerate(lines):
        if line.is_match:
            if not count:
                return list(lines[:index])
            count -= 1
    return list(lines)


def _take_bytes(lines: Sequence[MatchLine], size: int) -> list[MatchLine]:
    """Return the first lines that fit into `size` bytes;
    the first match is returned even if it is larger.
    """
    taken: list[MatchLine] = []
    for line in lines:
        size -= _measure(line)
        if size < 0 and any(each.is_match for each in taken):
            return taken
        if size >= 0 or line.is_match:
            taken.append(line)
    return taken


def group_lines(lines: list[MatchLine], *, grouped: bool) -> Iterator[MatchLine]:
    """Yield lines with a `--` line between groups that do not touch, as ripgrep prints them."""
    last = 0
    for line in lines:
        if grouped and last and line.number > last + 1:
            yield MatchLine(0, "--", is_match=False)
        # A reference to known lines has the number 0: no separator follows it.
        last = line.number
        yield line


def format_lines(lines: list[MatchLine], *, few_numbers: bool) -> Iterator[str]:
    """Yield lines with their numbers; with `few_numbers`,
    only matches and the first line of a group have one.

    In whole functions the other numbers would be a tenth of the output, and the model would have to
    remove them to quote lines in an edit. Blanks in their place keep the indentation of the file.
    """
    width = (
        max((len(str(line.number)) for line in lines if line.number), default=0)
        if few_numbers
        else 0
    )
    last = -1
    for line in lines:
        is_plain = few_numbers and not line.is_match and line.number == last + 1
        last = line.number
        if not line.number or (is_plain and not line.text):
            yield line.text
        elif is_plain:
            yield f"{'':{width}}  {line.text}"
        else:
            yield f"{line.number:>{width}}{':' if line.is_match else '-'} {line.text}"
