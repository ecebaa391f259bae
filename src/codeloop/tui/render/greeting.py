"""Draws the greeting in the middle of an empty conversation: a title, and useful keys."""

from collections.abc import Sequence

from rich.segment import Segment

from codeloop.tui.render.canvas import Canvas, Row

_GAP = 3
"""Cells between the keys and their meanings."""


def draw_greeting(
    canvas: Canvas, height: int, title: str, keys: Sequence[tuple[str, str]]
) -> list[Row]:
    """Return a title above a list of keys with their meanings, centred in `height` rows;
    empty if it does not fit.
    """
    # A command may have no key.
    hints = [(key, meaning) for key, meaning in keys if key]
    column = max((len(key) for key, _ in hints), default=0) + _GAP
    width = max((column + len(meaning) for _, meaning in hints), default=0)
    top = (height - len(hints) - 2) // 2
    if width > canvas.width or top < 0:
        return []
    styles, margin = canvas.styles, Segment(" " * ((canvas.width - width) // 2))
    title_style, key_style, muted_style = (
        styles.of("primary", "bold"),
        styles.of("text"),
        styles.of("text_muted"),
    )
    rows: list[Row] = [*([] for _ in range(top)), [margin, Segment(title, title_style)], []]
    return rows + [
        [margin, Segment(f"{key:{column}}", key_style), Segment(meaning, muted_style)]
        for key, meaning in hints
    ]
