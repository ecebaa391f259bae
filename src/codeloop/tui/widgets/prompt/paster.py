"""Handles pastes: short texts are inserted, long ones and images become chips."""

import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from codeloop.tui.editor.chips import Chip
from codeloop.tui.terminal.clipboard import (
    can_read_clipboard,
    read_clipboard_image,
    read_clipboard_text,
)
from codeloop.tui.widgets.prompt.image_paths import (
    IMAGE_MIME_TYPES,
    is_file,
    make_image_chip,
    read_image,
)
from codeloop.tui.widgets.prompt.prompt_editor import PromptEditor
from codeloop.tui.widgets.prompt.prompt_settings import PromptSettings

_MAX_PATHS_LENGTH = 8_000
"""Characters of a paste that is searched for the paths of dropped files;
a longer one is taken as text.
"""


class Paster:
    """Inserts pasted texts and images into an editor.

    `get_last_copy` returns the text last copied in this program,
    for machines whose clipboard can't be read.
    """

    def __init__(
        self,
        editor: PromptEditor,
        settings: PromptSettings,
        run_in_background: Callable[[Awaitable[None]], object],
        show_note: Callable[[str], None],
        get_last_copy: Callable[[], str],
    ) -> None:
        self._editor = editor
        self._settings = settings
        self._run_in_background = run_in_background
        self._show_note = show_note
        self._get_last_copy = get_last_copy

    def paste(self, text: str) -> None:
        """Insert a text from the terminal: a paste, or the paths of dropped files."""
        # Terminals paste line ends as carriage returns.
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
        images = self._read_images(text)
        if images:
            for image in images:
                self._editor.buffer.insert_chip(image)
                self._editor.buffer.insert(" ")
        elif text:
            self._insert(text)
        self._editor.update()

    def paste_clipboard(self) -> bool:
        """Paste from this machine's clipboard, later; return True: the key is handled."""
        self._run_in_background(self._paste_clipboard())
        return True

    async def _paste_clipboard(self) -> None:
        image = await read_clipboard_image()
        if image is not None:
            self._editor.buffer.insert_chip(make_image_chip(image, "image/png", "clipboard.png"))
            self._editor.buffer.insert(" ")
            self._editor.update()
            return
        text = await read_clipboard_text() or self._get_last_copy()
        if text:
            self.paste(text)
        elif not can_read_clipboard():
            self._show_note(
                "No program reads the clipboard here (wl-paste, xclip). Paste with the terminal's own key."
            )
        else:
            self._show_note("The clipboard is empty.")

    def _insert(self, text: str) -> None:
        lines = len(text.removesuffix("\n").split("\n"))
        buffer = self._editor.buffer
        if lines > self._settings.chip_lines:
            buffer.insert_chip(Chip(f"[Pasted {lines} lines]", text))
        elif len(text) > self._settings.chip_characters:
            buffer.insert_chip(Chip(f"[Pasted {len(text)} characters]", text))
        else:
            buffer.insert(text)

    def _read_images(self, text: str) -> list[Chip]:
        """Return the images if a text consists of nothing but their paths."""
        if (
            len(text) > _MAX_PATHS_LENGTH
            or "\n" in text.strip()
            or not text.rstrip().rstrip("'\"").lower().endswith(tuple(IMAGE_MIME_TYPES))
        ):
            return []
        words = [text.strip()]
        # A path with blanks may come without quotes.
        is_one_path = Path(words[0]).is_absolute() and is_file(Path(words[0]))
        if not is_one_path:
            # `shlex` fails on an odd quote, which is not a list of paths.
            with suppress(ValueError):
                words = shlex.split(text)
        chips: list[Chip] = []
        for word in words:
            image = read_image(word, self._show_note)
            if image is None:
                return []
            chips.append(image)
        return chips
