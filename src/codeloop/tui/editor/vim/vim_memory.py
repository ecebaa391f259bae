"""The memory of vi's commands: the last search, change, insertion and selection, which later commands repeat."""

from typing import Literal

from msgspec import Struct

from codeloop.tui.editor.vim.motions import MotionEnd, find_character, find_text, find_word_at

VimMode = Literal["insert", "replace", "normal", "visual", "lines"]


class LastSearch:
    """The last search for a character of the line, and the last search for a text, with their directions."""

    def __init__(self) -> None:
        self._character = ("", "")
        """The motion (`f`, `F`, `t` or `T`), and its character."""
        self._text = ("", 1)
        """The text, and the direction: 1 forwards, -1 backwards."""

    def find_character(self, text: str, at: int, keys: str, count: int) -> MotionEnd | None:
        """Return the end of `f`, `F`, `t`, `T`, `;` or `,`; None: the line has no such character."""
        if keys in {";", ","}:
            kind, char = self._character
            if not kind:
                return None
            kind = kind if keys == ";" else kind.swapcase()
            # The match next to the cursor is skipped, since the last search ended there.
            if kind in "tT":
                at = at + 1 if kind == "t" else at - 1
        else:
            kind, char = self._character = (keys[0], keys[1])
        character = find_character(text, max(at, 0), kind, char, count)
        if character is None:
            return None
        return MotionEnd(character, "inclusive" if kind in "ft" else "exclusive")

    def find_text(self, text: str, at: int, keys: str, count: int) -> MotionEnd | None:
        """Return the end of `/text`, `?text`, `*`, `#`, `n` or `N`; None: the text does not occur."""
        needle, step = self._text
        if keys[0] in "/?":
            needle, step = keys[1:-1] or needle, 1 if keys[0] == "/" else -1
        elif keys in {"*", "#"}:
            needle, step = find_word_at(text, at), 1 if keys == "*" else -1
        self._text = (needle, step)
        index: int | None = at
        for _ in range(count):
            index = None if index is None else find_text(text, index, needle, -step if keys == "N" else step)
        return None if index is None else MotionEnd(index)


class VimMemory(Struct):
    """The last search, change, insertion and selection, which later commands repeat."""

    search: LastSearch
    last_change: tuple[str, str] = ("", "")
    """The last change: its keys, and the text that was inserted after them."""
    insert_end: int = 0
    """The offset at which insert mode was left."""
    last_selection: tuple[VimMode, int, int] | None = None
    """The last selection: its mode, where it began, and the cursor."""
