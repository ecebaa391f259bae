"""The canvas that rows are drawn for: width, colours, and display options."""

from typing import Literal

from msgspec import Struct
from rich.segment import Segment

from codeloop.tui.render.pictures import PictureStore
from codeloop.tui.themes.styles import Styles

Row = list[Segment]
"""One row of the screen; at most as many cells as the canvas is wide."""
DiffView = Literal["auto", "unified", "split"]


class Canvas(Struct, frozen=True):
    """`width` in cells; `directory`: what paths are shown relative to (absolute).

    `thinking`: reasoning is shown; `details`: outputs of calls are shown, else one row each; `diff`: `auto` puts both
    sides next to each other where there is room; `pictures`: None where a line of text stands in their place;
    `child_key`: shows a subagent; `open_key`: shows all of the lowest call.
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
