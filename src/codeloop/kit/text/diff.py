"""Unified diffs (with the header of the HTTP contract), in bounded time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate

from msgspec import Struct

Edit = tuple[str, int, int, int, int]
_CONTEXT_LINES = 3
# Changes with at most so many unchanged lines between them are named as one range.
_MAX_GAP_LINES = 2
# Further ranges of a description are only counted.
_MAX_RANGES = 20
# A text that loses fewer lines is not reported: the number is to show unintended removals.
_MIN_LOST_LINES = 20
# After so many comparisons of lines, the rest of the text is shown as one replacement.
_MAX_COMPARISONS = 300_000


class Diff(Struct, frozen=True):
    """A change of one file: the patch as text, and how many lines it adds and deletes.

    `ranges`: where the new text differs, as first and last line (from 1); where lines were only deleted, the last is
    the line before them, one less than the first.
    """

    patch: str
    additions: int
    deletions: int
    ranges: tuple[tuple[int, int], ...] = ()

    @property
    def changed_lines(self) -> str:
        """The changed lines of the new text in words: `lines 3, 40-44; lines removed after 60`."""
        spans = [f"{a}" if a == z else f"{a}-{z}" for a, z in self.ranges if a <= z]
        insertions = [f"after {z}" if z else "at the top" for a, z in self.ranges if a > z]
        word = "line" if len(spans) == 1 and spans[0].isdigit() else "lines"
        texts = [f"{word} {_join_first_names(spans)}"] if spans else []
        texts += [f"lines removed {_join_first_names(insertions)}"] if insertions else []
        fewer = self.deletions - self.additions
        texts += [f"{fewer} lines fewer"] if fewer >= _MIN_LOST_LINES else []
        return "; ".join(texts)


def make_unified_diff(name: str, before: str, after: str, context: int = _CONTEXT_LINES) -> Diff:
    """Return the unified diff of two texts under the header `Index: name`; the patch is empty when they are equal."""
    if before == after:
        return Diff("", 0, 0)
    old, new = split_lines(before), split_lines(after)
    edits = list_edits(old, new)
    lines = [f"Index: {name}\n", "=" * 67 + "\n", f"--- {name}\n", f"+++ {name}\n"]
    for hunk in _group_hunks(edits, context):
        lines.extend(_render_hunk(hunk, old, new))
    additions = sum(j2 - j1 for tag, _, _, j1, j2 in edits if tag != "equal")
    deletions = sum(i2 - i1 for tag, i1, i2, _, _ in edits if tag != "equal")
    return Diff("".join(lines), additions, deletions, _list_changed_ranges(edits))


def _list_changed_ranges(edits: Sequence[Edit]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for tag, _, _, start, end in edits:
        if tag == "equal":
            continue
        is_near = ranges and start < end and ranges[-1][0] <= ranges[-1][1] and start - ranges[-1][1] <= _MAX_GAP_LINES
        first = ranges.pop()[0] if is_near else start + 1
        ranges.append((first, end))
    return tuple(ranges)


def _join_first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_RANGES} more places" if len(names) > _MAX_RANGES else ""
    return ", ".join(names[:_MAX_RANGES]) + more


def split_lines(text: str) -> list[str]:
    r"""Split after every `\n` only (a form feed or U+2028 does not end a line); joining restores the text."""
    lines = text.split("\n")
    last = lines.pop()
    complete_lines = [line + "\n" for line in lines]
    return [*complete_lines, last] if last else complete_lines


def list_edits(old: Sequence[str], new: Sequence[str]) -> list[Edit]:
    """Return the edits as `(tag, i1, i2, j1, j2)`; tags are equal, replace, delete, insert, as in difflib."""
    low = min(len(old), len(new))
    head = next((i for i in range(low) if old[i] != new[i]), low)
    rest = low - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    i_end, j_end = len(old) - tail, len(new) - tail
    edits: list[Edit] = [("equal", 0, head, 0, head)] if head else []
    edits.extend(
        (tag, i1 + head, i2 + head, j1 + head, j2 + head)
        for tag, i1, i2, j1, j2 in _diff_middle(old[head:i_end], new[head:j_end])
    )
    if tail:
        edits.append(("equal", i_end, len(old), j_end, len(new)))
    return edits


def _diff_middle(old: Sequence[str], new: Sequence[str]) -> list[Edit]:
    """Return the edits between the common start and end; large texts are first split at lines that are unique in both.

    Each part gets its share of the work.
    """
    counts_of_new = Counter(new)
    is_small = sum(1 + counts_of_new[line] for line in old) <= _MAX_COMPARISONS // 10
    size = len(old) + len(new) + 1
    edits: list[Edit] = []
    i, j = 0, 0
    for i_end, j_end in (*(() if is_small else _find_anchors(old, new)), (len(old), len(new))):
        share = _MAX_COMPARISONS * (i_end - i + j_end - j) // size
        edits.extend(
            (tag, i1 + i, i2 + i, j1 + j, j2 + j)
            for tag, i1, i2, j1, j2 in _diff_part(
                old[i:i_end], new[j:j_end], share if not is_small else _MAX_COMPARISONS
            )
        )
        if i_end < len(old):
            edits.append(("equal", i_end, i_end + 1, j_end, j_end + 1))
        i, j = i_end + 1, j_end + 1
    return list(_join_equal_edits(edits))


def _diff_part(old: Sequence[str], new: Sequence[str], work: int) -> list[Edit]:
    if not old and not new:
        return []
    if not old or not new:
        return [("insert" if new else "delete", 0, len(old), 0, len(new))]
    # No line in common, which the matcher would find only by comparing all.
    if set(old).isdisjoint(new):
        return [("replace", 0, len(old), 0, len(new))]
    matcher = BoundedMatcher(old, new, work)
    return [(tag, i1, i2, j1, j2) for tag, i1, i2, j1, j2 in matcher.get_opcodes()]


def _find_anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest sequence of lines that are unique on each side and in the same order, as pairs of indexes."""
    once = {line for line, count in Counter(new).items() if count == 1}
    once &= {line for line, count in Counter(old).items() if count == 1}
    index_in_new = {line: at for at, line in enumerate(new) if line in once}
    # Patience sorting: `ends[n]` is the smallest last index of a sequence of n + 1 lines, `tops[n]` its chain.
    ends: list[int] = []
    # Index in old, index in new, the one before in its chain.
    chains: list[tuple[int, int, int]] = []
    tops: list[int] = []
    for at, line in enumerate(old):
        if line in once:
            rank = bisect_left(ends, index_in_new[line])
            ends[rank : rank + 1] = [index_in_new[line]]
            tops[rank : rank + 1] = [len(chains)]
            chains.append((at, index_in_new[line], tops[rank - 1] if rank else -1))
    anchors: list[tuple[int, int]] = []
    at = tops[-1] if tops else -1
    while at >= 0:
        i, j, at = chains[at]
        anchors.append((i, j))
    return anchors[::-1]


def _join_equal_edits(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Join adjacent equal parts."""
    pending: Edit | None = None
    for edit in edits:
        if pending is None or edit[0] != "equal":
            if pending is not None:
                yield pending
            pending = edit if edit[0] == "equal" else None
            if pending is None:
                yield edit
        else:
            pending = ("equal", pending[1], edit[2], pending[3], edit[4])
    if pending is not None:
        yield pending


class BoundedMatcher(SequenceMatcher[str]):
    """difflib's matcher with a budget: after `work` comparisons the rest counts as different."""

    def __init__(self, old: Sequence[str], new: Sequence[str], work: int) -> None:
        super().__init__(None, old, new)
        self._budget = work
        counts = Counter(new)
        # difflib skips lines that are more common.
        popular = len(new) // 100 + 1 if len(new) >= 200 else len(new)
        self._costs = [0, *accumulate(1 + (n if (n := counts[line]) <= popular else 0) for line in old)]

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        """Return the longest common part; an empty one when the budget is used up."""
        end = len(self._costs) - 1 if ahi is None else ahi
        self._budget -= self._costs[end] - self._costs[alo]
        return super().find_longest_match(alo, ahi, blo, bhi) if self._budget >= 0 else Match(alo, blo, 0)


def _group_hunks(edits: Sequence[Edit], context: int) -> Iterator[list[Edit]]:
    hunk: list[Edit] = []
    for index, (tag, i1, i2, j1, j2) in enumerate(edits):
        if tag != "equal":
            hunk.append((tag, i1, i2, j1, j2))
            continue
        first, last = index == 0, index == len(edits) - 1
        if not first and not last and i2 - i1 <= 2 * context:
            hunk.append((tag, i1, i2, j1, j2))
            continue
        if not first:
            hunk.append((tag, i1, min(i2, i1 + context), j1, min(j2, j1 + context)))
            yield hunk
        hunk = [] if last else [(tag, max(i1, i2 - context), i2, max(j1, j2 - context), j2)]
    if hunk:
        yield hunk


def _render_hunk(hunk: Sequence[Edit], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    i1, i2, j1, j2 = hunk[0][1], hunk[-1][2], hunk[0][3], hunk[-1][4]
    yield f"@@ -{_format_range(i1, i2)} +{_format_range(j1, j2)} @@\n"
    for tag, a1, a2, b1, b2 in hunk:
        if tag == "equal":
            yield from (_format_line(" ", line) for line in old[a1:a2])
            continue
        yield from (_format_line("-", line) for line in old[a1:a2])
        yield from (_format_line("+", line) for line in new[b1:b2])


def _format_range(start: int, end: int) -> str:
    count = end - start
    # As `diff`: an empty range names the line before it.
    return f"{start + 1 if count else start},{count}"


def _format_line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def trim_indent(patch: str) -> str:
    """Remove the indentation that all lines of a unified diff share, for the screen."""
    lines = patch.split("\n")
    body = [index for index, line in enumerate(lines) if index >= 4 and line[:1] in {" ", "+", "-"}]
    texts = [lines[index][1:] for index in body if lines[index][1:].strip()]
    if not texts:
        return patch
    low, high = min(texts), max(texts)
    size = 0
    while size < len(low) and size < len(high) and low[size] == high[size] and low[size] in " \t":
        size += 1
    for index in body:
        lines[index] = lines[index][0] + lines[index][1 + size :]
    return "\n".join(lines)
