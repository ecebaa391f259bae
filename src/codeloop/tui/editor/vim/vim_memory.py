"""The memory of vi's commands: the last search, change, insertion and selection,
which later commands repeat.
"""

from typing import Literal, NamedTuple

from msgspec import Struct

from codeloop.tui.editor.vim.motions import MotionEnd, find_character, find_text, find_word_at

VimMode = Literal["insert", "replace", "normal", "visual", "lines"]
"""`visual` selects characters, `lines` whole lines."""


class LastSearch:
    """The last search for a character of the line, and the last search for a text,
    with their directions.
    """

    def __init__(self) -> None:
        self._motion = ""
        """The motion that searched for a character: `f`, `F`, `t` or `T`."""
        self._character = ""
        self._text = ""
        self._step = 1
        """The direction of the search for a text: 1 forwards, -1 backwards."""

    def find_character(self, text: str, offset: int, keys: str, count: int) -> MotionEnd | None:
        """Return the end of `f`, `F`, `t`, `T`, `;` or `,`; None: the line has no such character.

        The first four are remembered for the last two.
        """
        if keys in {";", ","}:
            if not self._motion:
                return None
            motion = self._motion if keys == ";" else self._motion.swapcase()
            # The match next to the cursor is skipped, since the last search ended there.
            if motion in "tT":
                offset = offset + 1 if motion == "t" else offset - 1
        else:
            motion, self._character = keys
            self._motion = motion
        index = find_character(text, max(offset, 0), motion, self._character, count)
        if index is None:
            return None
        return MotionEnd(index, "inclusive" if motion in "ft" else "exclusive")

    def find_text(self, text: str, offset: int, keys: str, count: int) -> MotionEnd | None:
        """Return the end of `/text`, `?text`, `*`, `#`, `n` or `N`; None: the text does not occur.

        The first four are remembered for the last two.
        """
        if keys[0] in "/?":
            # Without a text, the last one is searched for again. Enter, the last key, ends it.
            self._text = keys[1:-1] or self._text
            self._step = 1 if keys[0] == "/" else -1
        elif keys in {"*", "#"}:
            self._text = find_word_at(text, offset)
            self._step = 1 if keys == "*" else -1
        step = -self._step if keys == "N" else self._step
        for _ in range(count):
            index = find_text(text, offset, self._text, step)
            if index is None:
                return None
            offset = index
        return MotionEnd(offset)


class LastChange(NamedTuple):
    """The last change: its keys, and the text that was inserted after them."""

    keys: str = ""
    insertion: str = ""


class LastSelection(NamedTuple):
    """The last selection of visual mode: its mode, the offset at which it began, and the cursor."""

    mode: VimMode
    anchor: int
    cursor: int


class VimMemory(Struct):
    """The last search, change, insertion and selection, which later commands repeat."""

    search: LastSearch
    last_change: LastChange = LastChange()
    insert_end: int = 0
    """The offset at which insert mode was left."""
    last_selection: LastSelection | None = None
