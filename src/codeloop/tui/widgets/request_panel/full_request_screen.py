"""The screen that shows a whole request, for reading."""

from codeloop.tui.dialogs.parts.dialog import GetStyles
from codeloop.tui.dialogs.parts.reading_screen import ReadingScreen
from codeloop.tui.render.canvas import Canvas, DiffView, Row
from codeloop.tui.widgets.request_panel.draw_form import WHOLE_SCREEN_KEY, draw_content
from codeloop.tui.widgets.request_panel.form import Form

TITLE_WIDTH = 200
"""Cells of a title, more than any screen has: the screen cuts it where it is drawn."""


class FullRequestScreen(ReadingScreen):
    """The whole request on a screen of its own, for reading: it is answered in the
    panel once this is closed.
    """

    closing_keys = ((WHOLE_SCREEN_KEY, "back to the question"),)

    def __init__(self, form: Form, diff: DiffView, get_styles: GetStyles) -> None:
        def draw_request(width: int) -> list[Row]:
            return draw_content(form.get_content(width), Canvas(width, get_styles(), diff=diff))

        super().__init__(form.get_content(TITLE_WIDTH).title, draw_request, get_styles)
