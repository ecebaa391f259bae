"""Unified diffs (with the header of the HTTP contract), in bounded time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import NamedTuple

from msgspec import Struct

_CONTEXT_LINES = 3
# Changes with at most this many unchanged lines between them are named as one range.
_MAX_GAP_LINES = 2
# Further ranges of a description are only counted.
_MAX_RANGES = 20
# A text that loses fewer lines is not reported: the number is there to show unintended removals.
_MIN_LOST_LINES = 20
# After this many comparisons of lines, the rest of the text is shown as one replacement.
_MAX_COMPARISONS = 300_000


class LineEdit(NamedTuple):
    """An edit of lines, as difflib has it: `old[old_start:old_end]` became
    `new[new_start:new_end]`.

    `tag`: equal, replace, delete or insert.
    """

    tag: str
    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Diff(Struct, frozen=True):
    """A change of one file: the patch as text, and how many lines it adds and deletes.

    `ranges`: where the new text differs, as first and last line (from 1); where lines were only
    deleted, the last is the line before them, one less than the first.
    """

    patch: str
    additions: int
    deletions: int
    ranges: tuple[tuple[int, int], ...] = ()

    @property
    def changed_lines(self) -> str:
        """The changed lines of the new text in words: `lines 3, 40-44; lines removed after 60`."""
        spans = [
            f"{first}" if first == last else f"{first}-{last}"
            for first, last in self.ranges
            if first <= last
        ]
        deletions = [
            f"after {last}" if last else "at the top" for first, last in self.ranges if first > last
        ]
        word = "line" if len(spans) == 1 and spans[0].isdigit() else "lines"
        texts = [f"{word} {_join_first_names(spans)}"] if spans else []
        texts += [f"lines removed {_join_first_names(deletions)}"] if deletions else []
        lost_lines = self.deletions - self.additions
        texts += [f"{lost_lines} lines fewer"] if lost_lines >= _MIN_LOST_LINES else []
        return "; ".join(texts)


def make_unified_diff(name: str, before: str, after: str, context: int = _CONTEXT_LINES) -> Diff:
    """Return the unified diff of two texts under the header `Index: name`;
    the patch is empty when they are equal.
    """
    if before == after:
        return Diff("", 0, 0)
    old, new = split_lines(before), split_lines(after)
    edits = list_edits(old, new)
    lines = [f"Index: {name}\n", "=" * 67 + "\n", f"--- {name}\n", f"+++ {name}\n"]
    for hunk in _group_hunks(edits, context):
        lines.extend(_render_hunk(hunk, old, new))
    changes = [edit for edit in edits if edit.tag != "equal"]
    return Diff(
        patch="".join(lines),
        additions=sum(edit.new_end - edit.new_start for edit in changes),
        deletions=sum(edit.old_end - edit.old_start for edit in changes),
        ranges=_list_changed_ranges(edits),
    )


def _list_changed_ranges(edits: Sequence[LineEdit]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of `Diff.ranges`: changes that are near each other make one."""
    ranges: list[tuple[int, int]] = []
    for tag, _, _, start, end in edits:
        if tag == "equal":
            continue
        is_deletion = start == end
        if ranges and not is_deletion:
            first, last = ranges[-1]
            if first <= last and start - last <= _MAX_GAP_LINES:
                ranges[-1] = (first, end)
                continue
        ranges.append((start + 1, end))
    return tuple(ranges)


def _join_first_names(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MAX_RANGES} more places" if len(names) > _MAX_RANGES else ""
    return ", ".join(names[:_MAX_RANGES]) + rest


def split_lines(text: str) -> list[str]:
    r"""Split after every `\n` only (a form feed or U+2028 does not end a line);
    joining restores the text.
    """
    lines = text.split("\n")
    last = lines.pop()
    complete_lines = [line + "\n" for line in lines]
    return [*complete_lines, last] if last else complete_lines


def list_edits(old: Sequence[str], new: Sequence[str]) -> list[LineEdit]:
    """Return the edits that make the old lines the new ones, the equal parts included, in order."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    i_end, j_end = len(old) - tail, len(new) - tail
    edits: list[LineEdit] = [LineEdit("equal", 0, head, 0, head)] if head else []
    edits.extend(
        LineEdit(tag, i1 + head, i2 + head, j1 + head, j2 + head)
        for tag, i1, i2, j1, j2 in _diff_middle(old[head:i_end], new[head:j_end])
    )
    if tail:
        edits.append(LineEdit("equal", i_end, len(old), j_end, len(new)))
    return edits


def _diff_middle(old: Sequence[str], new: Sequence[str]) -> list[LineEdit]:
    """Return the edits between the common start and end;
    large texts are first split at lines that are unique in both.

    Each part gets its share of the comparisons.
    """
    counts_of_new = Counter(new)
    # The matcher compares a line again in each part that it splits the text into:
    # here it may do so ten times.
    is_small = sum(1 + counts_of_new[line] for line in old) <= _MAX_COMPARISONS // 10
    size = len(old) + len(new) + 1
    edits: list[LineEdit] = []
    i, j = 0, 0
    anchors = [] if is_small else _find_anchors(old, new)
    for i_end, j_end in (*anchors, (len(old), len(new))):
        share = _MAX_COMPARISONS if is_small else _MAX_COMPARISONS * (i_end - i + j_end - j) // size
        edits.extend(
            LineEdit(tag, i1 + i, i2 + i, j1 + j, j2 + j)
            for tag, i1, i2, j1, j2 in _diff_part(old[i:i_end], new[j:j_end], max_comparisons=share)
        )
        # The anchor itself.
        if i_end < len(old):
            edits.append(LineEdit("equal", i_end, i_end + 1, j_end, j_end + 1))
        i, j = i_end + 1, j_end + 1
    return list(_join_equal_edits(edits))


def _diff_part(old: Sequence[str], new: Sequence[str], max_comparisons: int) -> list[LineEdit]:
    if not old and not new:
        return []
    if not old or not new:
        return [LineEdit("insert" if new else "delete", 0, len(old), 0, len(new))]
    # No line in common, which the matcher would find only by comparing all.
    if set(old).isdisjoint(new):
        return [LineEdit("replace", 0, len(old), 0, len(new))]
    matcher = BoundedMatcher(old, new, max_comparisons)
    return [LineEdit(tag, i1, i2, j1, j2) for tag, i1, i2, j1, j2 in matcher.get_opcodes()]


def _find_anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest sequence of lines that are unique on each side and in the same order,
    as pairs of indexes.
    """
    unique_lines = {line for line, count in Counter(new).items() if count == 1}
    unique_lines &= {line for line, count in Counter(old).items() if count == 1}
    index_in_new = {line: index for index, line in enumerate(new) if line in unique_lines}
    # Patience sorting. Each link is a line: its index in `old`, its index in `new`,
    # and the link before it or -1.
    links: list[tuple[int, int, int]] = []
    # Of the sequences of n + 1 lines, one ends earliest in `new`: `ends[n]` is its last index
    # there, and `last_links[n]` its last link.
    ends: list[int] = []
    last_links: list[int] = []
    for index, line in enumerate(old):
        if line in unique_lines:
            rank = bisect_left(ends, index_in_new[line])
            ends[rank : rank + 1] = [index_in_new[line]]
            last_links[rank : rank + 1] = [len(links)]
            links.append((index, index_in_new[line], last_links[rank - 1] if rank else -1))
    anchors: list[tuple[int, int]] = []
    link = last_links[-1] if last_links else -1
    while link >= 0:
        index_in_old, index, link = links[link]
        anchors.append((index_in_old, index))
    return anchors[::-1]


def _join_equal_edits(edits: Iterable[LineEdit]) -> Iterator[LineEdit]:
    """Join adjacent equal parts."""
    equal_part: LineEdit | None = None
    for edit in edits:
        if edit.tag == "equal":
            equal_part = (
                edit
                if equal_part is None
                else equal_part._replace(old_end=edit.old_end, new_end=edit.new_end)
            )
            continue
        if equal_part is not None:
            yield equal_part
            equal_part = None
        yield edit
    if equal_part is not None:
        yield equal_part


class BoundedMatcher(SequenceMatcher[str]):
    """difflib's matcher with a budget: after `max_comparisons` of lines the
    rest counts as different.
    """

    def __init__(self, old: Sequence[str], new: Sequence[str], max_comparisons: int) -> None:
        super().__init__(None, old, new)
        self._budget = max_comparisons
        counts = Counter(new)
        # difflib skips lines that are more common ("popular"), from 200 lines on.
        max_count = len(new) // 100 + 1 if len(new) >= 200 else len(new)
        costs = (1 + (counts[line] if counts[line] <= max_count else 0) for line in old)
        # The comparisons that the old lines before each index take.
        self._costs_before = [0, *accumulate(costs)]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        """Return the longest common part; an empty one when the budget is used up."""
        end = len(self._costs_before) - 1 if ahi is None else ahi
        self._budget -= self._costs_before[end] - self._costs_before[alo]
        return (
            super().find_longest_match(alo, ahi, blo, bhi)
            if self._budget >= 0
            else Match(alo, blo, 0)
        )


def _group_hunks(edits: Sequence[LineEdit], context: int) -> Iterator[list[LineEdit]]:
    """Yield the edits of each hunk: changes with at most `context` equal lines before,
    after and twice between them.
    """
    hunk: list[LineEdit] = []
    for index, edit in enumerate(edits):
        if edit.tag != "equal":
            hunk.append(edit)
            continue
        tag, i1, i2, j1, j2 = edit
        is_first, is_last = index == 0, index == len(edits) - 1
        if not is_first and not is_last and i2 - i1 <= 2 * context:
            hunk.append(edit)
            continue
        if not is_first:
            hunk.append(LineEdit(tag, i1, min(i2, i1 + context), j1, min(j2, j1 + context)))
            yield hunk
        hunk = (
            [] if is_last else [LineEdit(tag, max(i1, i2 - context), i2, max(j1, j2 - context), j2)]
        )
    if hunk:
        yield hunk


def _render_hunk(hunk: Sequence[LineEdit], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    first, last = hunk[0], hunk[-1]
    old_range, new_range = (
        _format_range(first.old_start, last.old_end),
        _format_range(first.new_start, last.new_end),
    )
    yield f"@@ -{old_range} +{new_range} @@\n"
    for tag, i1, i2, j1, j2 in hunk:
        if tag == "equal":
            yield from (_format_line(" ", line) for line in old[i1:i2])
            continue
        yield from (_format_line("-", line) for line in old[i1:i2])
        yield from (_format_line("+", line) for line in new[j1:j2])


def _format_range(start: int, end: int) -> str:
    count = end - start
    # As `diff`: an empty range names the line before it.
    return f"{start + 1 if count else start},{count}"


def _format_line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def trim_indent(patch: str) -> str:
    """Remove the indentation that all lines of a unified diff share, for the screen."""
    lines = patch.split("\n")
    # After the four lines of the header, `Index:` to `+++`.
    body = [index for index, line in enumerate(lines) if index >= 4 and line[:1] in {" ", "+", "-"}]
    texts = [lines[index][1:] for index in body if lines[index][1:].strip()]
    if not texts:
        return patch
    # What the first and the last text in alphabetical order share, all of them share.
    low, high = min(texts), max(texts)
    size = 0
    while size < len(low) and size < len(high) and low[size] == high[size] and low[size] in " \t":
        size += 1
    for index in body:
        lines[index] = lines[index][0] + lines[index][1 + size :]
    return "\n".join(lines)
