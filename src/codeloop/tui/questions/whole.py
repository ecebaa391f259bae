"""What a request is about, over the whole screen."""

from codeloop.tui.dialogs.parts.dialog import Colours
from codeloop.tui.dialogs.parts.reading import ReadingScreen
from codeloop.tui.questions.form import Form
from codeloop.tui.questions.form_rows import about_rows
from codeloop.tui.render.canvas import Canvas, DiffView, Row

_WIDTH = 200
"""Cells of a title; it is cut to the screen where it is drawn."""


class WholeRequest(ReadingScreen):
    """Only shows: it is answered in the panel, once this is closed."""

    def __init__(self, form: Form, diff: DiffView, colours: Colours) -> None:
        def drawn(width: int) -> list[Row]:
            return about_rows(form.text(width), Canvas(width, colours(), diff=diff))

        super().__init__(form.text(_WIDTH).title, drawn, colours)
