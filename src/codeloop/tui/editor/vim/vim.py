"""`Vim` handles keys as vi does: its modes, and the commands of each mode, applied to a buffer."""

import re
from collections.abc import Callable

from codeloop.kit.text.patterns import compile_once
from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.grapheme_bounds import find_next_edge, snap_to_edge
from codeloop.tui.editor.vim.changes import join_lines, overwrite_character, replace_characters
from codeloop.tui.editor.vim.grammar import (
    COMMAND_START,
    KEY_COMMANDS,
    LINE_COMMAND_START,
    NORMAL_COMMAND,
    OPERATOR_SHORTHANDS,
    SCROLL_COMMANDS,
    VISUAL_COMMAND,
)
from codeloop.tui.editor.vim.motions import (
    find_first_nonblank,
    find_last_character,
    find_line_end,
    find_line_start,
)
from codeloop.tui.editor.vim.vim_memory import LastChange
from codeloop.tui.editor.vim.vim_visual import END_COLUMN, VimVisual


class Vim(VimVisual):
    """Handles the keys of vi for a buffer. `run` runs an action of the prompt,
    such as the history for `k`.

    `copy` is called with texts that are yanked into the clipboard.
    """

    def __init__(
        self,
        buffer: Buffer,
        run: Callable[[str], bool],
        copy: Callable[[str], object] = lambda text: text,
    ) -> None:
        super().__init__(buffer, run)
        self._copy = copy
        self._keys = ""
        """The keys of a command that is not complete yet."""
        self._insert_start: int | None = None
        """The offset at which insert mode began; None: it was not started by a command."""
        self._insert_count = 1
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
            self.leave_visual()
            self._keys = ""
            return not was_idle
        if key == "ctrl+r":
            self.buffer.redo()
            self._finish_command()
            return True
        if key in SCROLL_COMMANDS:
            self.run_action(SCROLL_COMMANDS[key])
            return True
        if compile_once(LINE_COMMAND_START).match(self._keys):
            return self._press_line(key, character)
        # Within a command, a key that has a character is meant as that.
        letter = (
            character if self._keys and character is not None else KEY_COMMANDS.get(key, character)
        )
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
            overwrite_character(self.buffer, character)
        elif key == "backspace":
            self.buffer.move(self.buffer.find_previous_offset())
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
        """Add a key to the command, and execute it once it is complete;
        keys that begin no command are dropped.
        """
        self._keys += character
        command = (
            compile_once(NORMAL_COMMAND) if self.mode == "normal" else compile_once(VISUAL_COMMAND)
        ).match(self._keys)
        if command is not None:
            self._keys = ""
            self._execute(command)
        elif compile_once(COMMAND_START).match(self._keys) is None:
            self._keys = ""

    def reset(self) -> None:
        """Go back to insert mode, for a new prompt."""
        if self._insert_start is not None:
            self.buffer.end_group()
        self.mode, self._keys, self._insert_start = "insert", "", None

    def _execute(self, command: re.Match[str]) -> None:
        """Execute a command that matches a pattern of `grammar.py`."""
        groups = command.groupdict()
        count = int(groups["count"]) if groups["count"] else None
        register = groups["register"] or groups["late_register"] or ""
        if groups["unsupported"]:
            self._finish_command()
            return
        if groups["colon"]:
            self._go_to_line(groups["colon"])
        elif groups["motion"]:
            self._execute_motion(groups["motion"], count)
        elif self.mode != "normal":
            self.execute_visual(groups, register, count)
        elif groups["operator"]:
            # As in vi, `2d3w` deletes six words.
            second_count = int(groups["second_count"]) if groups["second_count"] else None
            times = (count or 1) * (second_count or 1) if count or second_count else None
            self.apply_command(
                groups["operator"], groups["target"], groups["repeated"], times, register
            )
            # Yanking changes nothing that `.` could repeat.
            if groups["operator"] != "y":
                self.memory.last_change = LastChange(command[0])
        elif groups["command"] == ".":
            self._repeat(count)
        else:
            self._execute_command(groups["command"], count, register)
            if groups["command"] not in {"u", "v", "V", "Y", "gv"}:
                self.memory.last_change = LastChange(command[0])
        if (clipboard_text := self.registers.clipboard) is not None:
            self.registers.clipboard = None
            self._copy(clipboard_text)
        self._finish_command()

    def _go_to_line(self, keys: str) -> None:
        """Go to the line whose number follows a colon;
        other commands are not supported, and do nothing.
        """
        number = keys.strip("\n")[1:]
        if number.isdecimal():
            self._execute_motion("G", int(number))

    def _execute_motion(self, keys: str, count: int | None) -> None:
        """Move the cursor; `k` in the first line and `j` in the last one go through
        the history of prompts.
        """
        if (
            keys in {"j", "k"}
            and self.mode == "normal"
            and self.find_line_offset(keys, count) is None
        ):
            self.run_action("history_previous" if keys == "k" else "history_next")
            return
        target = self.find_motion_end(keys, count)
        if target is not None:
            column = self.column
            self.buffer.move(target.offset)
            if keys == "$":
                self.column = END_COLUMN
            else:
                self.column = column if keys in {"j", "k"} else None

    def _execute_command(self, keys: str, count: int | None, register: str) -> None:
        """Execute a command of normal mode that is neither a motion nor an operator."""
        buffer, times = self.buffer, count or 1
        text, offset = buffer.text, buffer.cursor
        match keys:
            case "i" | "a" | "I" | "A" | "gi":
                offsets = {
                    "i": offset,
                    "a": min(find_next_edge(text, offset), find_line_end(text, offset)),
                    "I": find_first_nonblank(text, offset),
                    "A": find_line_end(text, offset),
                    "gi": self.memory.insert_end,
                }
                buffer.move(offsets[keys])
                self.start_insert(times)
            case "o" | "O":
                self.start_insert(times)
                index = (
                    find_line_end(text, offset) if keys == "o" else find_line_start(text, offset)
                )
                buffer.replace(index, index, "\n")
                buffer.move(index + (keys == "o"))
            case "R":
                self.start_insert()
                self.mode = "replace"
            case "p" | "P":
                self.put(register, times, after=keys == "p")
            case "u":
                for _ in range(times):
                    buffer.undo()
            case "J" | "gJ":
                join_lines(buffer, max(times - 1, 1), keeps_blanks=keys == "gJ")
            case "~":
                end = offset
                for _ in range(times):
                    end = min(find_next_edge(text, end), find_line_end(text, offset))
                buffer.replace(offset, end, text[offset:end].swapcase())
            case "v" | "V":
                self.mode, self.visual_anchor = "visual" if keys == "v" else "lines", offset
            case "gv":
                self.select_again()
            case _ if keys[0] == "r":
                replace_characters(buffer, keys[1], times)
            case _:
                operator, target = OPERATOR_SHORTHANDS[keys]
                self.apply_command(operator, target or None, operator, count, register)

    def start_insert(self, times: int = 1) -> None:
        """Start insert mode; when it is left, the inserted text is repeated so that
        it is there `times` times.
        """
        self.mode, self._insert_start, self._insert_count = "insert", self.buffer.cursor, times
        self.buffer.begin_group()

    def _leave_insert(self) -> None:
        """Go back to normal mode: repeat the inserted text as the count says,
        and note it for `.`.
        """
        buffer, memory = self.buffer, self.memory
        if self._insert_start is not None:
            end = buffer.cursor
            insertion = buffer.text[min(self._insert_start, end) : end]
            if self.mode == "insert":
                memory.last_change = memory.last_change._replace(insertion=insertion)
                # `3ofoo` opens three lines.
                between = "\n" if memory.last_change.keys[-1:] in {"o", "O"} else ""
                buffer.replace(end, end, f"{between}{insertion}" * (self._insert_count - 1))
            memory.insert_end = buffer.cursor
            buffer.end_group()
            self._insert_start, self._insert_count = None, 1
        self.mode = "normal"
        if buffer.cursor > find_line_start(buffer.text, buffer.cursor):
            buffer.move(buffer.find_previous_offset())
        self._finish_command()

    def _repeat(self, count: int | None) -> None:
        """Repeat the last change, with the text that was inserted after it;
        a count replaces that of the change.
        """
        keys, insertion = self.memory.last_change
        if not keys:
            return
        if count:
            keys = f"{count}{keys.lstrip('0123456789')}"
        command = compile_once(NORMAL_COMMAND).match(keys)
        if command is None:
            return
        self._execute(command)
        if self.mode == "insert":
            self.buffer.replace(self.buffer.cursor, self.buffer.cursor, insertion)
            self.memory.last_change = LastChange(keys, insertion)
            self._leave_insert()
        elif self.mode == "replace":
            self._leave_insert()
        self.memory.last_change = LastChange(keys, insertion)

    def _finish_command(self) -> None:
        """After a command: in insert mode, note where the insertion starts;
        else put the cursor on a character.
        """
        if self.mode in {"insert", "replace"}:
            self._insert_start = self.buffer.cursor
            return
        buffer = self.buffer
        index = snap_to_edge(
            buffer.text, min(buffer.cursor, find_last_character(buffer.text, buffer.cursor))
        )
        if index != buffer.cursor or buffer.anchor is not None:
            column = self.column
            buffer.move(index)
            self.column = column
