"""`Buffer`: the text of an editor with its cursor, selection, chips and undo,
independent of how it is shown.
"""

from msgspec import Struct

from codeloop.tui.editor.chips import Chip, Chips, add_chip, escape_chips
from codeloop.tui.editor.grapheme_bounds import find_next_edge, find_previous_edge, snap_to_edge

_MAX_UNDO_GROUPS = 1_000
"""Groups of changes that can be undone."""


class Change(Struct, frozen=True):
    """A change of the text: its offset, the old and the new text,
    and the cursor before and after it.
    """

    start: int
    old: str
    new: str
    cursor_before: int
    cursor_after: int


class Buffer:
    """The text of an editor. Offsets count code points; the cursor is never inside a grapheme."""

    def __init__(self, text: str = "") -> None:
        self.chips: Chips = {}
        self.text = text
        self.cursor = len(text)
        self.anchor: int | None = None
        """The offset at which the selection began; None: nothing is selected."""
        self.killed_text = ""
        """The text that was cut last, which yank inserts."""
        self.column: int | None = None
        """The column (cells) that the cursor keeps when it moves up and down over shorter rows."""
        self.restored_prompt: str | None = None
        """The text of an undone prompt that was put into the buffer: while it is unchanged,
        a typed `/` replaces it.
        """
        self._undo: list[list[Change]] = []
        self._redo: list[list[Change]] = []
        self._is_joinable = False
        """Whether the next typed letter is added to the last undo group."""
        self._group_depth = 0
        """How many calls of `begin_group` were not ended yet."""
        self._has_group_changes = False
        """Whether the group of `begin_group` has changes."""

    @property
    def selection(self) -> tuple[int, int]:
        """The start and the end of the selection; if nothing is selected, the cursor twice."""
        anchor = self.cursor if self.anchor is None else self.anchor
        return min(anchor, self.cursor), max(anchor, self.cursor)

    def move(self, to: int, *, select: bool = False) -> None:
        """Move the cursor; `select`: extend the selection to it.
        Later typing begins a new undo group.
        """
        if select and self.anchor is None:
            self.anchor = self.cursor
        elif not select:
            self.anchor = None
        self.cursor = snap_to_edge(self.text, to)
        self.column = None
        self._is_joinable = False

    def find_previous_offset(self) -> int:
        """Return the offset one character to the left."""
        return find_previous_edge(self.text, self.cursor)

    def find_next_offset(self) -> int:
        """Return the offset one character to the right."""
        return find_next_edge(self.text, self.cursor)

    def find_line_start(self, offset: int | None = None) -> int:
        """Return the start of the line around an offset, by default the cursor."""
        return self.text.rfind("\n", 0, self.cursor if offset is None else offset) + 1

    def find_line_end(self, offset: int | None = None) -> int:
        """Return the end of the line around an offset,
        by default the cursor: before its line feed.
        """
        end = self.text.find("\n", self.cursor if offset is None else offset)
        return len(self.text) if end < 0 else end

    def type_text(self, text: str) -> None:
        """Replace the selection by typed text; the letters of a word are undone together."""
        start, end = self.selection
        # After an undo, a user who types a command does not want it in the
        # middle of the old prompt.
        if text == "/" and self.text == self.restored_prompt and start == len(self.text):
            start, self.restored_prompt = 0, None
        is_joined = (
            self._is_joinable
            and start == end
            and len(text) == 1
            and not (text.isspace() and self._is_after_word())
        )
        self.replace(start, end, escape_chips(self.chips, text), is_joined=is_joined)
        self._is_joinable = True

    def insert(self, text: str) -> None:
        """Replace the selection by a text."""
        self.replace(*self.selection, escape_chips(self.chips, text))

    def insert_chip(self, chip: Chip) -> None:
        """Replace the selection by a chip."""
        self.replace(*self.selection, add_chip(self.chips, chip, self.text))

    def delete(self, start: int, end: int, *, kill: bool = False) -> None:
        """Delete the text between two offsets; `kill`: it becomes the text that yank inserts."""
        if start < end:
            if kill:
                self.killed_text = self.text[start:end]
            self.replace(start, end, "")

    def replace(self, start: int, end: int, text: str, *, is_joined: bool = False) -> None:
        """Replace a range; the cursor goes behind the new text, whose chips must be in `chips`.

        `is_joined`: the change is added to the last undo group.
        """
        start, end = max(min(start, end), 0), min(max(start, end), len(self.text))
        old = self.text[start:end]
        if old == text:
            self.move(start + len(text))
            return
        # A change holds only the texts that differ,
        # so that undo takes little memory for a long text.
        change = Change(start, old, text, self.cursor, start + len(text))
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor, self.anchor, self.column = change.cursor_after, None, None
        self._redo.clear()
        if self._undo and (is_joined or (self._group_depth and self._has_group_changes)):
            self._undo[-1].append(change)
        else:
            self._undo.append([change])
            del self._undo[:-_MAX_UNDO_GROUPS]
            self._has_group_changes = self._group_depth > 0
        self._is_joinable = False

    def begin_group(self) -> None:
        """Start a group of changes that are undone together, until `end_group`."""
        if self._group_depth == 0:
            self._has_group_changes = False
        self._group_depth += 1

    def end_group(self) -> None:
        """End the group started by `begin_group`."""
        self._group_depth = max(self._group_depth - 1, 0)
        self._is_joinable = False

    def undo(self) -> bool:
        """Undo the last change; return whether there was one."""
        if not self._undo:
            return False
        group = self._undo.pop()
        for change in reversed(group):
            self.text = (
                self.text[: change.start] + change.old + self.text[change.start + len(change.new) :]
            )
        self._restore_cursor(group[0].cursor_before)
        self._redo.append(group)
        return True

    def redo(self) -> bool:
        """Redo the last undone change; return whether there was one."""
        if not self._redo:
            return False
        group = self._redo.pop()
        for change in group:
            self.text = (
                self.text[: change.start] + change.new + self.text[change.start + len(change.old) :]
            )
        self._restore_cursor(group[-1].cursor_after)
        self._undo.append(group)
        return True

    def _restore_cursor(self, cursor: int) -> None:
        self.cursor, self.anchor, self.column = min(cursor, len(self.text)), None, None
        self._is_joinable = self._has_group_changes = False

    def _is_after_word(self) -> bool:
        return self.cursor > 0 and not self.text[self.cursor - 1].isspace()
