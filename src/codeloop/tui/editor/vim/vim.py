"""Handles keys as vi does: its modes, and the commands of each mode, applied to a buffer."""

import re
from collections.abc import Callable

from codeloop.tui.editor.boundaries import find_next_edge, find_previous_edge, snap_to_edge
from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.vim.changes import CASES, join, overwrite, put_over, replace_characters
from codeloop.tui.editor.vim.grammar import (
    AS_OPERATORS,
    INCOMPLETE,
    KEYS,
    LINE,
    NORMAL,
    SCROLLS,
    VISUAL,
    VISUAL_OPERATORS,
)
from codeloop.tui.editor.vim.motions import (
    first_letter,
    last_of_line,
    line_end,
    line_start,
)
from codeloop.tui.editor.vim.operators import VimOperators
from codeloop.tui.editor.vim.search import VimMode
from codeloop.tui.editor.vim.spans import OperatorSpan
from codeloop.tui.editor.vim.text_objects import find_text_object

_LINE_END = 1 << 30
"""A column behind the end of every line, which the cursor keeps after `$`."""


class Vim(VimOperators):
    """Handles the keys of vi for a buffer. `run` runs an action of the prompt, such as the history for `k`.

    `copy` is called with texts that are yanked into the clipboard.
    """

    def __init__(
        self, buffer: Buffer, run: Callable[[str], bool], copy: Callable[[str], object] = lambda text: text
    ) -> None:
        super().__init__(buffer, run)
        self.mode: VimMode = "insert"
        self._copy = copy
        self._keys = ""
        """The keys of a command that is not complete yet."""
        self._anchor = 0
        """The offset at which the visual selection began."""
        self._start: int | None = None
        """The offset at which insert mode began; None: it was not started by a command."""
        self._times = 1
        """How many times the text that is being inserted will be in the buffer."""

    @property
    def status(self) -> str:
        """The mode, and the keys of an incomplete command."""
        return "" if self.mode == "insert" else f"{self._keys.strip()} {self.mode.upper()}".strip()

    def press(self, key: str, character: str | None) -> bool:
        """Handle a key; return whether it has a meaning here."""
        if self.mode in {"insert", "replace"}:
            return self._press_insert(key, character)
        if key == "escape":
            was_idle = self.mode == "normal" and not self._keys
            self._leave_visual()
            return not was_idle
        if key == "ctrl+r":
            self.buffer.redo()
            self._finish_command()
            return True
        if key in SCROLLS:
            self.run(SCROLLS[key])
            return True
        if LINE.match(self._keys):
            return self._press_line(key, character)
        letter = KEYS.get(key, character) if not self._keys or character is None else character
        if letter is None:
            return False
        self._add_key(letter)
        return True

    def _press_insert(self, key: str, character: str | None) -> bool:
        """Handle a key in insert or replace mode.

        Escape and a letter typed right after it arrive as one key with the modifier alt.
        """
        if key == "escape":
            self._leave_insert()
            return True
        *modifiers, letter = key.split("+")
        if modifiers in (["alt"], ["alt", "shift"]) and len(letter) == 1:
            self._leave_insert()
            self.press(letter, letter.upper() if "shift" in modifiers else letter)
            return True
        if self.mode == "insert":
            return False
        if character is not None:
            overwrite(self.buffer, character)
        elif key == "backspace":
            self.buffer.move(self.buffer.previous_offset())
        else:
            return False
        return True

    def _press_line(self, key: str, character: str | None) -> bool:
        """Handle a key of a search or a colon command, which Enter ends."""
        if key == "enter":
            self._add_key("\n")
        elif key == "backspace":
            self._keys = self._keys[:-1]
        elif character is not None:
            self._keys += character
        return True

    def _add_key(self, character: str) -> None:
        self._keys += character
        command = (NORMAL if self.mode == "normal" else VISUAL).match(self._keys)
        if command is not None:
            self._keys = ""
            self._execute(command)
        elif INCOMPLETE.match(self._keys) is None:
            self._keys = ""

    def selection(self) -> tuple[int, int]:
        """Return the start and end of the selection; in visual mode it includes the character under the cursor."""
        if self.mode not in {"visual", "lines"}:
            return self.buffer.selection
        text = self.buffer.text
        low, high = sorted((min(self._anchor, len(text)), self.buffer.cursor))
        if self.mode == "lines":
            return line_start(text, low), min(line_end(text, high) + 1, len(text))
        return low, min(line_end(text, high) + 1, len(text)) if self.column == _LINE_END else find_next_edge(text, high)

    def reset(self) -> None:
        """Go back to insert mode, for a new prompt."""
        if self._start is not None:
            self.buffer.end()
        self.mode, self._keys, self._start = "insert", "", None

    def _leave_visual(self) -> None:
        if self.mode != "normal":
            self.memory.visual = (self.mode, self._anchor, self.buffer.cursor)
        self.mode, self._keys = "normal", ""

    def _execute(self, command: re.Match[str]) -> None:
        groups = command.groupdict()
        count = int(groups["count"]) if groups["count"] else None
        register = groups["register"] or groups["late"] or ""
        if groups["nothing"]:
            self._go_to_line(groups["nothing"])
        elif groups["motion"]:
            self._move(groups["motion"], count)
        elif self.mode != "normal":
            self._execute_visual(groups, register, count)
        elif groups["operator"]:
            more = int(groups["more"]) if groups["more"] else None
            times = (count or 1) * (more or 1) if count or more else None
            self.operate(groups["operator"], groups["target"], groups["twice"], times, register)
            if groups["operator"] != "y":
                self.memory.change = (command[0], "")
        elif groups["command"] == ".":
            self._repeat(count)
        else:
            self._command(groups["command"], count, register)
            if groups["command"] not in {"u", "v", "V", "Y", "gv"}:
                self.memory.change = (command[0], "")
        if (clipboard_text := self.registers.clipboard) is not None:
            self.registers.clipboard = None
            self._copy(clipboard_text)
        self._finish_command()

    def _go_to_line(self, keys: str) -> None:
        """Go to the line whose number follows a colon; other commands are not supported, and do nothing."""
        number = keys.strip("\n")[1:]
        if keys[0] == ":" and number.isdecimal():
            self._move("G", int(number))

    def _move(self, keys: str, count: int | None) -> None:
        if keys in {"j", "k"} and self.mode == "normal" and self.move_vertically(keys, count) is None:
            self.run("history_previous" if keys == "k" else "history_next")
            return
        target = self.target(keys, count)
        if target is not None:
            column = self.column
            self.buffer.move(target.at)
            self.column = _LINE_END if keys == "$" else column if keys in {"j", "k"} else None

    def _command(self, keys: str, count: int | None, register: str) -> None:
        buffer, times = self.buffer, count or 1
        text, at = buffer.text, buffer.cursor
        match keys:
            case "i" | "a" | "I" | "A" | "gi":
                offsets = {
                    "i": at,
                    "a": min(find_next_edge(text, at), line_end(text, at)),
                    "I": first_letter(text, at),
                    "A": line_end(text, at),
                    "gi": self.memory.insert_end,
                }
                buffer.move(offsets[keys])
                self.insert(times)
            case "o" | "O":
                self.insert(times)
                index = line_end(text, at) if keys == "o" else line_start(text, at)
                buffer.replace(index, index, "\n")
                buffer.move(index + (keys == "o"))
            case "R":
                self.insert()
                self.mode = "replace"
            case "p" | "P":
                self.put(register, times, after=keys == "p")
            case "u":
                for _ in range(times):
                    buffer.undo()
            case "J" | "gJ":
                join(buffer, max(times - 1, 1), keeps_blanks=keys == "gJ")
            case "~":
                end = at
                for _ in range(times):
                    end = min(find_next_edge(text, end), line_end(text, at))
                buffer.replace(at, end, text[at:end].swapcase())
            case "v" | "V":
                self.mode, self._anchor = "visual" if keys == "v" else "lines", at
            case "gv":
                self._select_again()
            case _ if keys[0] == "r":
                replace_characters(buffer, keys[1], times)
            case _:
                operator, target = AS_OPERATORS[keys]
                self.operate(operator, target or None, operator, count, register)

    def _select_again(self) -> None:
        if self.memory.visual is not None:
            self.mode, self._anchor, cursor = self.memory.visual
            self.buffer.move(min(cursor, len(self.buffer.text)))

    def _execute_visual(self, groups: dict[str, str | None], register: str, count: int | None) -> None:
        buffer = self.buffer
        if groups["object"]:
            around, kind = groups["object"]
            span = find_text_object(buffer.text, buffer.cursor, kind, around=around == "a")
            if span is not None and span[0] < span[1]:
                self._anchor = span[0]
                self.mode = "lines" if kind == "p" else self.mode
                buffer.move(span[1] if kind == "p" else find_previous_edge(buffer.text, span[1]))
            return
        keys = groups["command"] or ""
        if keys in {"o", "v", "V"}:
            mode: VimMode = "visual" if keys == "v" else "lines"
            if keys == "o":
                anchor, self._anchor = self._anchor, buffer.cursor
                buffer.move(anchor)
            elif self.mode == mode:
                self._leave_visual()
            else:
                self.mode = mode
        elif keys == "gv":
            self._select_again()
        else:
            self._operate_visual(keys, register, count or 1)

    def _operate_visual(self, keys: str, register: str, times: int) -> None:
        buffer = self.buffer
        low, high = self.selection()
        is_lines = self.mode == "lines" or keys in {"X", "D", "C", "S", "R", "Y", "<", ">"}
        if is_lines and buffer.text[high - 1 : high] == "\n" and high > low and self.mode == "lines":
            high -= 1
        self._leave_visual()
        selected_text = buffer.text[low:high]
        match keys[0]:
            case "p" | "P":
                before = self.registers.of(register)
                if keys == "p":
                    self.registers.take(buffer, "", low, high, is_lines=is_lines, is_yank=False)
                put_over(buffer, before, low, high, is_lines=is_lines)
            case "r":
                buffer.replace(low, high, "".join(char if char == "\n" else keys[1] for char in selected_text))
                buffer.move(low)
            case _ if keys in {"J", "gJ"}:
                buffer.move(low)
                join(buffer, max(selected_text.count("\n"), 1), keeps_blanks=keys == "gJ")
            case _:
                operator = VISUAL_OPERATORS.get(keys, keys)
                self.apply(operator, OperatorSpan(low, high, is_lines=is_lines), register, times)
                if operator in CASES:
                    buffer.move(low)

    def insert(self, times: int = 1) -> None:
        """Start insert mode; when it is left, the inserted text is repeated so that it is there `times` times."""
        self.mode, self._start, self._times = "insert", self.buffer.cursor, times
        self.buffer.begin()

    def _leave_insert(self) -> None:
        buffer, memory = self.buffer, self.memory
        if self._start is not None:
            end = buffer.cursor
            insertion = buffer.text[min(self._start, end) : end]
            if self.mode == "insert":
                memory.change = (memory.change[0], insertion)
                between = "\n" if memory.change[0][-1:] in {"o", "O"} else ""
                buffer.replace(end, end, f"{between}{insertion}" * (self._times - 1))
            memory.insert_end = buffer.cursor
            buffer.end()
            self._start, self._times = None, 1
        self.mode = "normal"
        if buffer.cursor > line_start(buffer.text, buffer.cursor):
            buffer.move(buffer.previous_offset())
        self._finish_command()

    def _repeat(self, count: int | None) -> None:
        keys, insertion = self.memory.change
        if not keys:
            return
        keys = f"{count}{keys.lstrip('0123456789')}" if count else keys
        command = NORMAL.match(keys)
        if command is None:
            return
        self._execute(command)
        if self.mode == "insert":
            self.buffer.replace(self.buffer.cursor, self.buffer.cursor, insertion)
            self.memory.change = (keys, insertion)
            self._leave_insert()
        elif self.mode == "replace":
            self._leave_insert()
        self.memory.change = (keys, insertion)

    def _finish_command(self) -> None:
        """After a command: in insert mode, note where the insertion starts; else put the cursor on a character."""
        if self.mode in {"insert", "replace"}:
            self._start = self.buffer.cursor
            return
        buffer = self.buffer
        index = snap_to_edge(buffer.text, min(buffer.cursor, last_of_line(buffer.text, buffer.cursor)))
        if index != buffer.cursor or buffer.anchor is not None:
            column = self.column
            buffer.move(index)
            self.column = column
