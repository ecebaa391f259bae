"""How everything looks: the theme, and what the person wants to see."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from textual.theme import Theme

from codeloop.schema.errors import CodeloopError
from codeloop.tui.render.canvas import Canvas, DiffView
from codeloop.tui.settings.settings import UiSettings
from codeloop.tui.themes import themes
from codeloop.tui.themes.styles import Styles

WIDE = 120
"""Columns of the screen from which on the sidebar is shown by itself."""


class Appearance:
    """The theme in use and the switches of the view. `problem`: why the theme that was asked for is not used."""

    def __init__(self, settings: UiSettings, folders: Sequence[Path], *, is_dark: bool = True) -> None:
        self.diff: DiffView
        self.mode: Literal["dark", "light"]
        self.problem = ""
        self.name = ""
        self.styles: Styles
        self.theme: Theme
        self._folders = tuple(folders)
        self._is_dark = is_dark
        self.adopt(settings)

    def adopt(self, settings: UiSettings) -> None:
        """Look as these settings say."""
        self.thinking, self.details = settings.thinking, settings.details
        self.sidebar, self.diff = settings.sidebar, settings.diff_view
        is_light = settings.mode == "light" or (settings.mode == "auto" and not self._is_dark)
        self.mode = "light" if is_light else "dark"
        try:
            self.choose(settings.theme)
        except CodeloopError as error:
            self.problem = str(error)
            self.choose(themes.DEFAULT)

    def choose(self, name: str) -> Theme:
        """Use another theme, and return it for the widgets. Raises CodeloopError if it can't be used."""
        colours = themes.load(name, self.mode, self._folders)
        self.styles, self.name = Styles(colours), name
        self.theme = themes.textual_theme(colours, f"codeloop-{name}-{self.mode}")
        return self.theme

    def names(self) -> list[str]:
        """Return the names of all themes."""
        return themes.names(self._folders)

    def has_sidebar(self, width: int) -> bool:
        """Return whether the sidebar is shown: as the person wants it, else where there is room for it."""
        return self.sidebar == "show" or (self.sidebar == "auto" and width >= WIDE)

    def canvas(self, directory: str) -> Canvas:
        """Return the canvas of a transcript, which sets the width itself."""
        return Canvas(
            width=80,
            styles=self.styles,
            directory=directory,
            thinking=self.thinking,
            details=self.details,
            diff=self.diff,
        )
