"""What later vi commands come back to: the last search, change, insertion and selection."""

from typing import Literal

from msgspec import Struct

from codeloop.tui.editor.vim.motions import MotionEnd, find_character, find_text, word_at_cursor

VimMode = Literal["insert", "replace", "normal", "visual", "lines"]


class LastSearch:
    """The last search and its direction: a character of the line, or a text."""

    def __init__(self) -> None:
        self._character = ("", "")
        """The motion, and its character."""
        self._text = ("", 1)

    def find_character(self, text: str, at: int, keys: str, count: int) -> MotionEnd | None:
        """Return where `f`, `F`, `t`, `T` and their repetitions go; None: the character is not there."""
        if keys in {";", ","}:
            kind, char = self._character
            if not kind:
                return None
            kind = kind if keys == ";" else kind.swapcase()
            if kind in "tT":  # not the match that the cursor is at already
                at = at + 1 if kind == "t" else at - 1
        else:
            kind, char = self._character = (keys[0], keys[1])
        character = find_character(text, max(at, 0), kind, char, count)
        if character is None:
            return None
        return MotionEnd(character, "inclusive" if kind in "ft" else "exclusive")

    def find_text(self, text: str, at: int, keys: str, count: int) -> MotionEnd | None:
        """Return where `/text`, `?text`, `*`, `#`, `n` and `N` go; None: the text is not there."""
        needle, step = self._text
        if keys[0] in "/?":
            needle, step = keys[1:-1] or needle, 1 if keys[0] == "/" else -1
        elif keys in {"*", "#"}:
            needle, step = word_at_cursor(text, at), 1 if keys == "*" else -1
        self._text = (needle, step)
        index: int | None = at
        for _ in range(count):
            index = None if index is None else find_text(text, index, needle, -step if keys == "N" else step)
        return None if index is None else MotionEnd(index)


class VimMemory(Struct):
    """What later vi commands come back to: the last search, change, insertion and selection."""

    search: LastSearch
    change: tuple[str, str] = ("", "")
    """The last change: its keys, and what was inserted after them."""
    insert_end: int = 0
    """Where insert mode was left."""
    visual: tuple[VimMode, int, int] | None = None
    """The last selection: its mode and both ends."""
