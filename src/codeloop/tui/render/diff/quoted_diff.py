"""Draws a whole diff behind a bar, as for a request, a work tree, or the changes of a session. Pure."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from rich.segment import Segment

from codeloop.kit.terminal_text import one_line
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import cut_path
from codeloop.tui.render.diff.patch import PatchedFile, read_patches
from codeloop.tui.render.diff.rows import DiffRows

MOST = 5_000
"""The most rows of a diff that are drawn."""
_BAR = "│ "


@lru_cache(maxsize=2)  # the panel asks at every key
def draw_quoted_diff(diff: str, canvas: Canvas) -> Sequence[Row]:
    """Return a diff as rows behind a bar, since a model wrote it; none if some of its lines would not be shown."""
    patches = list(read_patches(diff))
    if not _is_complete(diff, patches):
        return []
    bar = Segment(_BAR, canvas.styles.of("border"))
    rows = list(islice(_draw_rows(patches, canvas), MOST + 1))
    if len(rows) > MOST:
        rows[MOST:] = [[Segment("… and more than can be shown here", canvas.styles.of("warning"))]]
    return [[bar, *row] for row in rows]


def _draw_rows(patches: list[PatchedFile], canvas: Canvas) -> Iterator[Row]:
    room = canvas.width - len(_BAR)
    for patch in patches:
        if len(patches) > 1:
            additions, deletions = patch.counts
            sums = f"  +{additions} -{deletions}"
            name = cut_path(one_line(patch.path, 500), max(room - len(sums), 8))
            yield [Segment(name, canvas.styles.of("text", "bold")), Segment(sums, canvas.styles.of("text_muted"))]
        yield from DiffRows(patch, canvas, room).rows()


def _is_complete(diff: str, patches: list[PatchedFile]) -> bool:
    """Return whether the patches contain every added and deleted line; each file may have two header lines."""
    lines = diff.split("\n")
    for sign, column in (("+", 0), ("-", 1)):
        more = sum(line.startswith(sign) for line in lines) - sum(patch.counts[column] for patch in patches)
        if more not in {0, len(patches)}:
            return False
    return bool(patches)
