"""Vi's modes over a buffer."""

import re
from collections.abc import Callable
from typing import Literal

from codeloop.tui.prompt.text.buffer import Buffer
from codeloop.tui.prompt.text.graphemes import next_edge, previous_edge, snapped
from codeloop.tui.prompt.vim.edits import Register, delete_lines, join, put, replace_characters, word_range
from codeloop.tui.prompt.vim.motions import (
    MotionEnd,
    first_letter,
    found,
    last_of_line,
    line_end,
    line_start,
    simple,
    vertical,
)
from codeloop.tui.prompt.vim.objects import KINDS, text_object

VimMode = Literal["insert", "normal", "visual", "lines"]

_FIND = r"[fFtT](?:.|\n)"
_MOTION = rf"gg|[hjklwbeWBEG0^_$;,%{{}} ]|{_FIND}"
_OBJECT = rf"[ia][{re.escape(''.join(KINDS))}]"
_COUNT = r"(?P<count>[1-9]\d*)?"
_NORMAL = re.compile(
    rf"{_COUNT}(?:(?P<operator>[dcy])(?P<more>[1-9]\d*)?(?:(?P<target>{_MOTION}|{_OBJECT})|(?P<twice>[dcy]))"
    rf"|(?P<motion>{_MOTION})|(?P<command>r(?:.|\n)|[iaIAoOxXDCYsSpPuJ~vV.]))\Z"
)
_VISUAL = re.compile(
    rf"{_COUNT}(?:(?P<motion>{_MOTION})|(?P<object>{_OBJECT})|(?P<command>r(?:.|\n)|[dxcsyopPJ~uUvV]))\Z"
)
_UNFINISHED = re.compile(r"(?:[1-9]\d*)?(?:[dcy](?:[1-9]\d*)?)?(?:[iagfFtTr])?\Z")
_KEYS = {"up": "k", "down": "j", "backspace": "h", "left": "h", "right": "l", "home": "0", "end": "$", "delete": "x"}


class Vim:
    """Takes keys for a buffer. `run`: carries out an action of the prompt, as for `k` in the first line."""

    def __init__(self, buffer: Buffer, run: Callable[[str], bool]) -> None:
        self.mode: VimMode = "insert"
        self.buffer = buffer
        self._run = run
        self._typed = ""
        self._anchor = 0
        self._register = Register()
        self._find = ("", "")
        self._last: tuple[str, str] = ("", "")
        """The last change: its keys, and what was inserted after them."""
        self._start: int | None = None
        """Where the cursor stood when insert mode began."""
        self._column: int | None = None

    def press(self, key: str, character: str | None) -> bool:
        """Do what a key does; return whether it means anything here."""
        if self.mode == "insert":
            if key != "escape":
                return False
            self._leave_insert()
            return True
        if key == "escape":
            was_idle = self.mode == "normal" and not self._typed
            self.mode, self._typed = "normal", ""
            return not was_idle
        if key == "ctrl+r":
            self.buffer.redo()
            self._settle()
            return True
        typed = _KEYS.get(key, character) if not self._typed or character is None else character
        if typed is None:
            return False
        self._typed += typed
        pattern = _NORMAL if self.mode == "normal" else _VISUAL
        if (command := pattern.match(self._typed)) is not None:
            self._typed = ""
            self._do(command)
        elif _UNFINISHED.match(self._typed) is None:
            self._typed = ""
        return True

    def selection(self) -> tuple[int, int]:
        """Return what is selected: in visual mode with the character under the cursor."""
        if self.mode in {"insert", "normal"}:
            return self.buffer.selection
        text = self.buffer.text
        low, high = sorted((min(self._anchor, len(text)), self.buffer.cursor))
        if self.mode == "lines":
            return line_start(text, low), min(line_end(text, high) + 1, len(text))
        return low, next_edge(text, high)

    def reset(self) -> None:
        """Begin in insert mode, as for a new prompt."""
        if self._start is not None:
            self.buffer.end()
        self.mode, self._typed, self._start = "insert", "", None

    def _do(self, command: re.Match[str]) -> None:
        found = command.groupdict()
        count = int(found["count"]) if found["count"] else None
        if self.mode != "normal":
            self._do_visual(found, count)
        elif found["operator"]:
            more = int(found["more"]) if found["more"] else None
            times = (count or 1) * (more or 1) if count or more else None
            self._operate(found["operator"], found["target"], found["twice"], times)
            if found["operator"] != "y":
                self._last = (command[0], "")
        elif found["motion"]:
            self._move(found["motion"], count)
        elif found["command"] == ".":
            self._repeat(count)
        else:
            self._command(found["command"], count)
            if found["command"][0] not in "uvVY":
                self._last = (command[0], "")
        self._settle()

    def _move(self, keys: str, count: int | None) -> None:
        if keys in {"j", "k"} and self.mode == "normal" and self._vertical(keys, count) is None:
            self._run("history_previous" if keys == "k" else "history_next")
            return
        target = self._target(keys, count)
        if target is not None:
            column = self._column
            self.buffer.move(target.at)
            self._column = column if keys in {"j", "k"} else None

    def _target(self, keys: str, count: int | None) -> MotionEnd | None:
        text, at = self.buffer.text, self.buffer.cursor
        if keys in {"j", "k"}:
            place = self._vertical(keys, count)
            return None if place is None else MotionEnd(place, "lines")
        if keys[0] in "fFtT" or keys in {";", ","}:
            return self._found(keys, count or 1)
        return simple(text, at, keys, count)

    def _vertical(self, keys: str, count: int | None) -> int | None:
        text, at = self.buffer.text, self.buffer.cursor
        if self._column is None:
            self._column = at - line_start(text, at)
        return vertical(text, at, (count or 1) * (1 if keys == "j" else -1), self._column)

    def _found(self, keys: str, count: int) -> MotionEnd | None:
        text, at = self.buffer.text, self.buffer.cursor
        if keys in {";", ","}:
            kind, char = self._find
            if not kind:
                return None
            kind = kind if keys == ";" else kind.swapcase()
            if kind in "tT":  # not the one that the cursor stands before already
                at = at + 1 if kind == "t" else at - 1
        else:
            kind, char = keys[0], keys[1]
            self._find = (kind, char)
        place = found(text, max(at, 0), kind, char, count)
        if place is None:
            return None
        return MotionEnd(place, "inclusive" if kind in "ft" else "exclusive")

    def _operate(self, operator: str, keys: str | None, twice: str | None, count: int | None) -> None:
        text, at = self.buffer.text, self.buffer.cursor
        if keys is None:
            if twice == operator:
                below = at
                for _ in range((count or 1) - 1):
                    below = min(line_end(text, below) + 1, len(text))
                self._apply(operator, at, below, is_lines=True)
            return
        if keys[0] in "ia" and len(keys) == 2:
            span = text_object(text, at, keys[1], around=keys[0] == "a")
            if span is not None:
                self._apply(operator, *span)
            return
        on_word = at < len(text) and not text[at].isspace()
        if operator == "c" and keys in {"w", "W"} and on_word:  # changes the word, not the blank behind it
            keys = "e" if keys == "w" else "E"
            end = text_object(text, at, keys.replace("e", "w").replace("E", "W"), around=False)
            if (count or 1) == 1 and end is not None:
                self._apply(operator, at, end[1])
                return
        target = self._target(keys, count)
        if target is None:
            return
        low, high = sorted((at, target.at))
        if keys in {"w", "W"}:  # the last word's line feed is not taken
            low, high = word_range(text, low, high)
        elif target.reach == "inclusive" and high < line_end(text, high):
            high = next_edge(text, high)
        self._apply(operator, low, high, is_lines=target.reach == "lines")

    def _apply(self, operator: str, low: int, high: int, *, is_lines: bool = False) -> None:
        buffer, first = self.buffer, low
        if is_lines:
            low, high = line_start(buffer.text, low), line_end(buffer.text, high)
        if operator == "c":
            self._insert()
        if low == high and not is_lines:
            buffer.move(low)
            return
        self._register.take(buffer, low, high, is_lines=is_lines)
        if operator == "y":
            buffer.move(first)
        elif operator == "d" and is_lines:
            delete_lines(buffer, low, high)
        else:
            buffer.replace(low, high, "")

    def _command(self, keys: str, count: int | None) -> None:
        buffer, times = self.buffer, count or 1
        text, at = buffer.text, buffer.cursor
        match keys[0]:
            case "i" | "a" | "I" | "A":
                places = {"i": at, "a": min(next_edge(text, at), line_end(text, at)), "I": first_letter(text, at)}
                buffer.move(places.get(keys, line_end(text, at)))
                self._insert()
            case "o" | "O":
                self._insert()
                place = line_end(text, at) if keys == "o" else line_start(text, at)
                buffer.replace(place, place, "\n")
                buffer.move(place + (keys == "o"))
            case "x" | "X" | "s" | "D" | "C" | "S" | "Y":
                operator, target = {"x": "dl", "X": "dh", "s": "cl", "D": "d$", "C": "c$"}.get(keys, "  ")
                if keys in "SY":
                    self._operate("c" if keys == "S" else "y", None, "c" if keys == "S" else "y", count)
                else:
                    self._operate(operator, target, None, count)
            case "r":
                replace_characters(buffer, keys[1], times)
            case "p" | "P":
                put(buffer, self._register, times, after=keys == "p")
            case "u":
                for _ in range(times):
                    buffer.undo()
            case "J":
                join(buffer, max(times - 1, 1))
            case "~":
                end = at
                for _ in range(times):
                    end = min(next_edge(text, end), line_end(text, at))
                buffer.replace(at, end, text[at:end].swapcase())
            case _:
                self.mode = "visual" if keys == "v" else "lines"
                self._anchor = at

    def _do_visual(self, found: dict[str, str | None], count: int | None) -> None:
        buffer = self.buffer
        if found["motion"]:
            self._move(found["motion"], count)
            return
        if found["object"]:
            span = text_object(buffer.text, buffer.cursor, found["object"][1], around=found["object"][0] == "a")
            if span is not None and span[0] < span[1]:
                self._anchor = span[0]
                buffer.move(previous_edge(buffer.text, span[1]))
            return
        keys = found["command"] or ""
        if keys == "o":
            anchor, self._anchor = self._anchor, buffer.cursor
            buffer.move(anchor)
            return
        if keys in "vV":
            wanted: VimMode = "visual" if keys == "v" else "lines"
            self.mode = "normal" if self.mode == wanted else wanted
            return
        self._operate_visual(keys)

    def _operate_visual(self, keys: str) -> None:
        buffer = self.buffer
        is_lines, (low, high) = self.mode == "lines", self.selection()
        if is_lines and buffer.text[high - 1 : high] == "\n" and high > low:
            high -= 1
        self.mode = "normal"
        chosen = buffer.text[low:high]
        match keys[0]:
            case "d" | "x" | "c" | "s" | "y":
                operator = {"x": "d", "s": "c"}.get(keys, keys)
                self._apply(operator, low, high, is_lines=is_lines)
            case "p" | "P":
                before, self._register = self._register, Register()
                self._register.take(buffer, low, high, is_lines=is_lines)
                buffer.replace(low, high, f"\n{before.text}\n" if before.is_lines and not is_lines else before.text)
            case "J":
                buffer.move(low)
                join(buffer, max(chosen.count("\n"), 1))
            case "r":
                kept = [char if char == "\n" else keys[1] for char in chosen]
                buffer.replace(low, high, "".join(kept))
                buffer.move(low)
            case _:
                changed = {"~": chosen.swapcase, "u": chosen.lower, "U": chosen.upper}[keys]()
                buffer.replace(low, high, changed)
                buffer.move(low)

    def _insert(self) -> None:
        self.mode, self._start = "insert", self.buffer.cursor
        self.buffer.begin()

    def _leave_insert(self) -> None:
        buffer = self.buffer
        if self._start is not None:
            end = buffer.cursor
            self._last = (self._last[0], buffer.text[min(self._start, end) : end])
            buffer.end()
            self._start = None
        self.mode = "normal"
        if buffer.cursor > line_start(buffer.text, buffer.cursor):
            buffer.move(buffer.left())
        self._settle()

    def _repeat(self, count: int | None) -> None:
        keys, inserted = self._last
        if not keys:
            return
        keys = f"{count}{keys.lstrip('0123456789')}" if count else keys
        command = _NORMAL.match(keys)
        if command is None:
            return
        self._do(command)
        if self.mode == "insert":
            self.buffer.replace(self.buffer.cursor, self.buffer.cursor, inserted)
            self._last = (keys, inserted)
            self._leave_insert()
        self._last = (keys, inserted)

    def _settle(self) -> None:
        """Keep the cursor on a character outside of insert mode; in it, what is inserted begins here."""
        if self.mode == "insert":
            self._start = self.buffer.cursor
            return
        buffer = self.buffer
        place = snapped(buffer.text, min(buffer.cursor, last_of_line(buffer.text, buffer.cursor)))
        if place != buffer.cursor or buffer.anchor is not None:
            column = self._column
            buffer.move(place)
            self._column = column
