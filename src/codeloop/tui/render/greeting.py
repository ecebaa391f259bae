"""Draws the greeting in the middle of an empty conversation: a title, and useful keys."""

from collections.abc import Sequence

from rich.segment import Segment

from codeloop.tui.render.canvas import Canvas, Row

_GAP = 3
"""Cells between the keys and their meanings."""


def draw_greeting(canvas: Canvas, height: int, title: str, keys: Sequence[tuple[str, str]]) -> list[Row]:
    """Return a title above a list of keys with their meanings, centred in `height` rows; empty if it does not fit."""
    hints = [(key, what) for key, what in keys if key]
    column = max((len(key) for key, _ in hints), default=0) + _GAP
    width = max((column + len(what) for _, what in hints), default=0)
    top = (height - len(hints) - 2) // 2
    if width > canvas.width or top < 0:
        return []
    segment = Segment(" " * ((canvas.width - width) // 2))
    strong, key_style, muted_style = (
        canvas.styles.of(*look) for look in (("primary", "bold"), ("text",), ("text_muted",))
    )
    rows: list[Row] = [*([] for _ in range(top)), [segment, Segment(title, strong)], []]
    return rows + [[segment, Segment(f"{key:{column}}", key_style), Segment(what, muted_style)] for key, what in hints]
