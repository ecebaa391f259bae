"""Shows a request full-screen."""

from codeloop.tui.dialogs.parts.dialog import Colours
from codeloop.tui.dialogs.parts.reader import ReadingScreen
from codeloop.tui.render.canvas import Canvas, DiffView, Row
from codeloop.tui.widgets.request_panel.form import Form
from codeloop.tui.widgets.request_panel.form_rows import about_rows

WHOLE = "f"
"""The key that opens and closes it."""
_WIDTH = 200
"""Cells of a title; it is cut to the screen where it is draw_request."""


class FullRequest(ReadingScreen):
    """Read-only: the request is answered in the panel, once this is closed."""

    closing = ((WHOLE, "back to the question"),)

    def __init__(self, form: Form, diff: DiffView, colours: Colours) -> None:
        def draw_request(width: int) -> list[Row]:
            return about_rows(form.text(width), Canvas(width, colours(), diff=diff))

        super().__init__(form.text(_WIDTH).title, draw_request, colours)
