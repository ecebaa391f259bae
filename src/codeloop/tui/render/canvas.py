"""`Canvas`: the width, the colours and the display options with which rows of
the conversation are drawn.
"""

from typing import Literal

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style

from codeloop.tui.render.picture_rows import PictureStore
from codeloop.tui.themes.styles import Styles

Row = list[Segment]
"""One row of the screen; at most as many cells as the canvas is wide."""
GUTTER = Style(meta={"gutter": True})
"""Marks what stands beside a text and is not part of it when it is copied: numbers of lines,
signs of a diff.
"""
DiffView = Literal["auto", "unified", "split"]


class Canvas(Struct, frozen=True):
    """The options for drawing rows. `width` in cells; `directory`: the absolute path that
    displayed paths start from.

    `thinking`: whether the model's thinking is shown; `details`: whether outputs of calls are
    shown, else a call is one row until the user opens it; `diff`: `auto` shows both sides of a diff
    next to each other if there is room and both have changes; `pictures`: None if pictures are
    replaced by a line of text; `child_key`: the key that shows a subagent; `open_key`: the key that
    opens everything; `has_tasks_beside`: the list of tasks is in the sidebar.
    """

    width: int
    styles: Styles
    directory: str = ""
    thinking: bool = True
    details: bool = True
    diff: DiffView = "auto"
    pictures: PictureStore | None = None
    child_key: str = ""
    open_key: str = ""
    has_tasks_beside: bool = False
