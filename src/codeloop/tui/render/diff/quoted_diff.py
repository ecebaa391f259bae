"""Draws a diff with a bar on its left, for permission requests, work trees,
and the changes of a session.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from rich.segment import Segment

from codeloop.kit.text.terminal_text import one_line
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.diff.diff_renderer import draw_diffs
from codeloop.tui.render.diff.patch import PatchedFile, parse_patches, sum_counts

MAX_DIFF_ROWS = 5_000
"""Rows of a diff that are drawn."""
_MAX_PATH_LENGTH = 500
_BAR = "│ "


# The request panel is drawn again at every key.
@lru_cache(maxsize=2)
def draw_quoted_diff(diff: str, canvas: Canvas, *, names_one: bool = False) -> Sequence[Row]:
    """Return a diff as rows with a bar on the left, at most MAX_DIFF_ROWS;
    none if it can't be parsed completely.

    The bar marks the text as the model's, so that it can't be mistaken for one of the program.
    `names_one`: as of `draw_diffs`.
    """
    patches = list(parse_patches(diff))
    # A user who approves a change must not miss a line of it;
    # without rows, the caller shows the text of the diff.
    if not _is_complete(diff, patches):
        return []
    bar = Segment(_BAR, canvas.styles.of("border"))
    drawn_rows = draw_diffs(
        patches,
        canvas,
        canvas.width - len(_BAR),
        lambda path: one_line(path, _MAX_PATH_LENGTH),
        names_one=names_one,
    )
    rows = list(islice(drawn_rows, MAX_DIFF_ROWS + 1))
    if len(rows) > MAX_DIFF_ROWS:
        rows[MAX_DIFF_ROWS:] = [
            [Segment("… and more than can be shown here", canvas.styles.of("warning"))]
        ]
    return [[bar, *row] for row in rows]


def _is_complete(diff: str, patches: list[PatchedFile]) -> bool:
    """Return whether the patches contain every added and deleted line of a diff,
    apart from headers of files.
    """
    lines = diff.split("\n")
    counts = sum_counts(patch.counts for patch in patches)
    for sign, count in (("+", counts.additions), ("-", counts.deletions)):
        # Each file's header has a line that begins with `---`, and one with `+++`;
        # some diffs have none.
        excess = sum(line.startswith(sign) for line in lines) - count
        if excess not in {0, len(patches)}:
            return False
    return bool(patches)
