"""Chooses the lines of a search to show: whole functions around matches, and a fair share for each file."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from codeloop.schema.bounds.reading import READ_PARSED, SEARCH_BLOCK, SEARCH_BYTES
from codeloop.schema.limits import READ_LINE, SEARCH_RESULTS
from codeloop.schema.wire import replace
from codeloop.workspace.files.encoding import NotText, decode
from codeloop.workspace.files.safe_open import load
from codeloop.workspace.search.blocks import CodeBlock, find_enclosing, list_blocks
from codeloop.workspace.search.rg_matches import FileMatches, GrepResult, MatchLine

_ROW = 8
"""Bytes of a line besides its text: its number and separators."""
_RUN = 4
"""The fewest lines that are named instead of shown again."""
_AROUND = 2
"""How many lines are shown before and after a match in a function that is too long to be shown."""
_MOST_AROUND = 20
"""Of a file with more matches than these, such a match is shown alone."""
_COMMENT = 60
"""The longest comment above a function, in lines."""
_COMMENTED = re.compile(r"\s*(?:\*|/\*|//|#|--|@)")
"""The start of a line of a comment, or of a decorator."""
_NAME = 100
"""Bytes of a file's heading."""


def show_blocks(result: GrepResult, lines_read: Mapping[Path, Mapping[int, str]]) -> GrepResult:
    """Widen each match to its whole function, where there is one and it is not too long.

    `lines_read`: the lines of each file that the session has read, by number; those are only named.
    """
    files = [_widen_to_blocks(each, lines_read.get(each.path, {})) for each in result.files[: SEARCH_RESULTS.value]]
    return replace(result, files=files)


def _widen_to_blocks(hits: FileMatches, lines_read: Mapping[int, str]) -> FileMatches:
    try:
        if hits.path.stat().st_size > READ_PARSED.value:
            return hits
        text = decode(load(hits.path, READ_PARSED.value).data).content
    except (OSError, NotText, ValueError):
        return hits
    blocks, lines = list_blocks(text, hits.path.suffix), text.split("\n")
    matches = {line.number for line in hits.lines if line.is_match}
    texts = {line.number: line.text for line in hits.lines}
    for number in sorted(matches):
        block = find_enclosing(blocks, number, SEARCH_BLOCK.value)
        inner: Iterable[int] = ()
        if block is not None:
            inner = range(block.first, min(block.last, len(lines)) + 1)
        elif len(matches) <= _MOST_AROUND and (head := _find_head(blocks, lines, number)):
            inner = (head, *range(max(number - _AROUND, 1), min(number + _AROUND, len(lines)) + 1))
        if inner:
            texts = {each: lines[each - 1].rstrip("\r")[: READ_LINE.value] for each in inner} | texts
    rows = [MatchLine(number, texts[number], number in matches) for number in sorted(texts)]
    return FileMatches(hits.path, hits.matches, [*_name_lines_read(rows, lines_read)])


def _find_head(blocks: Sequence[CodeBlock], lines: Sequence[str], number: int) -> int | None:
    """Return the first line of the function below whose comment a line is in, else of the one that holds the line."""
    for at in range(number, min(number + _COMMENT, len(lines) + 1)):
        if not _COMMENTED.match(lines[at - 1]):
            if at > number and any(each.first == at for each in blocks):
                return at
            break
    block = find_enclosing(blocks, number, len(lines) + 1)
    return None if block is None else block.first


def _name_lines_read(rows: Sequence[MatchLine], lines_read: Mapping[int, str]) -> Iterator[MatchLine]:
    """Yield the lines; a longer run without matches that was read and is unchanged becomes one line, of number 0."""
    run: list[MatchLine] = []
    for row in (*rows, None):
        is_known = row is not None and not row.is_match and lines_read.get(row.number) == row.text
        if run and not (is_known and row is not None and row.number == run[-1].number + 1):
            named = MatchLine(0, f"({run[0].number}-{run[-1].number} as you read them above)", is_match=False)
            yield from [named] if len(run) >= _RUN else run
            run = []
        if is_known and row is not None:
            run.append(row)
        elif row is not None:
            yield row


def share_lines(files: Sequence[FileMatches]) -> list[list[MatchLine]]:
    """Return the lines to show of each file. Matches and bytes are shared fairly: unused shares go to others."""
    counts = share_fairly([sum(line.is_match for line in hits.lines) for hits in files], SEARCH_RESULTS.value)
    rows = [_first_matches(hits.lines, count) for hits, count in zip(files, counts, strict=True)]
    room = SEARCH_BYTES.value - _NAME * len(files)
    sizes = share_fairly([sum(map(_measure, lines)) for lines in rows], max(room, 0))
    return [_first_bytes(lines, size) for lines, size in zip(rows, sizes, strict=True)]


def share_fairly(wanted: Sequence[int], most: int) -> list[int]:
    """Divide `most` fairly: each gets what it wants, or an equal share of what the smaller ones leave."""
    shares = [0] * len(wanted)
    for number, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        shares[index] = min(wanted[index], -(-most // (len(wanted) - number)))
        most -= shares[index]
    return shares


def _measure(line: MatchLine) -> int:
    return len(line.text.encode(errors="replace")) + _ROW


def _first_matches(lines: Sequence[MatchLine], count: int) -> list[MatchLine]:
    """Return the lines before the match after the first `count`."""
    for index, line in enumerate(lines):
        if line.is_match:
            if not count:
                return list(lines[:index])
            count -= 1
    return list(lines)


def _first_bytes(lines: Sequence[MatchLine], size: int) -> list[MatchLine]:
    """Return the first lines that fit, and the first match whatever its size."""
    rows: list[MatchLine] = []
    for line in lines:
        size -= _measure(line)
        if size < 0 and any(each.is_match for each in rows):
            return rows
        if size >= 0 or line.is_match:
            rows.append(line)
    return rows
