"""`Appearance`: the theme that is in use, and the display options."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from textual.theme import Theme

from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop.tui.render.canvas import Canvas, DiffView
from codeloop.tui.render.picture_rows import PictureStore
from codeloop.tui.settings.ui_settings import UiSettings
from codeloop.tui.terminal.terminal_colours import TerminalColours
from codeloop.tui.themes.palette_256 import fit_to_palette
from codeloop.tui.themes.styles import Styles
from codeloop.tui.themes.textual_theme import make_textual_theme
from codeloop.tui.themes.theme_loader import (
    COLOURLESS_THEME,
    DEFAULT_THEME,
    TERMINAL_THEME,
    ThemeMode,
    list_themes,
    load_theme,
)

SIDEBAR_MIN_WIDTH = 120
"""Cells of the screen from which the sidebar is shown automatically."""


class Appearance:
    """The current theme and display options. `problem`: why the configured theme is not used."""

    pictures: PictureStore | None = None
    """Draws pictures within the conversation; None: the terminal can't show any,
    or was not queried yet.
    """

    child_key = ""
    """The key that shows a subagent."""
    open_key = ""
    """The key that opens everything."""

    def __init__(
        self, settings: UiSettings, folders: Sequence[Path], terminal: TerminalColours | None = None
    ) -> None:
        self.diff: DiffView
        self.mode: ThemeMode
        self.problem = ""
        self.theme_name = ""
        self.styles: Styles
        self.theme: Theme
        self._folders = tuple(folders)
        self._terminal = terminal or TerminalColours()
        self.apply_settings(settings)

    def apply_settings(self, settings: UiSettings) -> None:
        """Apply settings, with no more colours than the terminal has."""
        self.thinking, self.details = settings.thinking, settings.details
        self.sidebar, self.diff = settings.sidebar, settings.diff_view
        self._settings = settings
        self.mode = self._choose_mode()
        try:
            self.use_theme(settings.theme if self.has_colours else COLOURLESS_THEME)
            if self._terminal.depth == "standard" and not self.theme.ansi:
                self.use_theme(TERMINAL_THEME)
        except CodeloopError as error:
            self.problem = str(error)
            self.use_theme(DEFAULT_THEME)

    @property
    def has_colours(self) -> bool:
        """Whether colours are shown: the user may want none (NO_COLOR)."""
        return self._terminal.depth != "none"

    @property
    def wants_pictures(self) -> bool:
        """Whether pictures are drawn within the conversation if the terminal can."""
        return self._settings.pictures and self.has_colours

    @property
    def has_all_colours(self) -> bool:
        """Whether the terminal shows all RGB colours, not only a palette."""
        return self._terminal.depth == "truecolor"

    def set_background(self, *, is_dark: bool) -> bool:
        """Set whether the terminal's background is dark;
        return whether everything must be redrawn.
        """
        self._terminal = replace(self._terminal, is_dark=is_dark)
        before, mode = self.mode, self._choose_mode()
        # A user's theme may have colours for the other mode only.
        with suppress(CodeloopError):
            if mode != before:
                self.use_theme(self.theme_name, mode)
        return self.mode != before

    def _choose_mode(self) -> ThemeMode:
        if self._settings.mode == "auto":
            return "dark" if self._terminal.is_dark else "light"
        return self._settings.mode

    def switch_mode(self) -> None:
        """Use the light colours instead of the dark ones, or the reverse.
        Raises CodeloopError: the theme has none.
        """
        self.use_theme(self.theme_name, "light" if self.mode == "dark" else "dark")

    def use_theme(self, name: str, mode: ThemeMode | None = None) -> Theme:
        """Use a theme, in another mode if one is given, and return it for the widgets.

        Raises CodeloopError if it can't be used; nothing has changed then.
        """
        mode = mode or self.mode
        colours = load_theme(name, mode, self._folders)
        if self._terminal.depth == "256":
            colours = fit_to_palette(colours, is_dark=mode == "dark")
        self.styles, self.theme_name, self.mode = Styles(colours), name, mode
        self.theme = make_textual_theme(colours, f"codeloop-{name}-{mode}")
        return self.theme

    def list_themes(self) -> list[str]:
        """Return the names of all themes."""
        return list_themes(self._folders)

    def has_sidebar(self, width: int) -> bool:
        """Return whether the sidebar is shown on a screen of `width` cells: as chosen,
        else by its width.
        """
        return self.sidebar == "show" or (self.sidebar == "auto" and width >= SIDEBAR_MIN_WIDTH)

    def create_canvas(self, directory: str, screen_width: int) -> Canvas:
        """Return a canvas for a transcript on a screen of some width;
        the transcript sets its own width.
        """
        return Canvas(
            width=80,
            styles=self.styles,
            directory=directory,
            thinking=self.thinking,
            details=self.details,
            diff=self.diff,
            pictures=self.pictures if self._settings.pictures else None,
            child_key=self.child_key,
            open_key=self.open_key,
            has_tasks_beside=self.has_sidebar(screen_width),
        )
