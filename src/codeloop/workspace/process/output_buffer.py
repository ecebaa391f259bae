"""Collects the output of a command in bounded memory, its head and tail,
and the whole in a file of limited size.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.small_files import write_all
from codeloop.kit.text.plain_output import PlainOutput, to_plain_text
from codeloop.kit.text.truncate import count_bytes, count_lines, cut_text
from codeloop.schema.limits import SHELL_FILE, SHELL_OUTPUT, SHELL_REPORT
from codeloop.workspace.files.saved_outputs import create_output_file, shorten_output
from codeloop.workspace.tool_bounds import USUAL_BOUNDS, ToolBounds

# A character takes up to four bytes in UTF-8.
_RECENT_BYTES = 4 * SHELL_OUTPUT.value
# The bytes of the head, and of the tail, that are kept: much of it may be progress bars,
# which are removed later.
_KEPT_BYTES = 512 * 1024
_OVERWRITTEN_NOTE = "of what was written over, the last state is shown"

# An output with fewer characters, and without a word of installers, stays as it is.
_SHORT_CHARS = 2_000


class TakenOutput(NamedTuple):
    """New output: `text` for a model; `screen_text`: its end, for a screen.

    `is_cut`: the middle of the text is left out. `path`: the file with the whole output,
    if anything is left out.
    """

    text: str
    screen_text: str
    is_cut: bool
    path: Path | None


class OutputBuffer:
    """Collects output. `total`: its bytes; `line_ends`: their number.

    `path`: the file with the whole output. It is made when a part is left out;
    with `opens_file`, from the start.
    """

    def __init__(
        self, folder: Path, bounds: ToolBounds = USUAL_BOUNDS, *, opens_file: bool = False
    ) -> None:
        self.path: Path | None = None
        self.total = 0
        self.line_ends = 0
        self.folder = folder
        self._bounds = bounds
        self._kept_bytes = max(_KEPT_BYTES, bounds.command_bytes)
        self._head = bytearray()
        self._tail = bytearray()
        self._bytes_taken = 0
        # The descriptor of the file, -1 while it is not open; and why it could not be written.
        self._file = -1
        self._bytes_stored = 0
        self._failure = ""
        if opens_file:
            self._open_file()

    def feed(self, chunk: bytes) -> None:
        """Add output."""
        self.total += len(chunk)
        self.line_ends += chunk.count(b"\n")
        if (
            self.path is None
            and not self._failure
            and self.total - self._bytes_taken > self._kept_bytes
        ):
            self._open_file()
        head_space = self._kept_bytes - len(self._head)
        self._head += chunk[:head_space]
        self._tail += chunk[head_space:]
        # It may grow to twice its size, so that bytes are moved rarely.
        if len(self._tail) > 2 * self._kept_bytes:
            del self._tail[: -self._kept_bytes]
        self._write_to_file(chunk)

    def read_recent(self) -> str:
        """Return the last characters for a screen, after an ellipsis if something is left out."""
        tail = self._tail[-_RECENT_BYTES:]
        if len(tail) < _RECENT_BYTES:
            tail = (self._head + tail)[-_RECENT_BYTES:]
        text = _decode(tail)
        if self.total - self._bytes_taken <= _RECENT_BYTES and len(text) <= SHELL_OUTPUT.value:
            return text
        return "...\n\n" + text[-SHELL_OUTPUT.value :]

    def take(self) -> TakenOutput:
        """Return the output since the last `take`, condensed;
        if it is too long, its head, a note and its tail.
        """
        # The bytes between head and tail that were dropped.
        # Without any, all of the output is in `start`.
        gap = self.total - self._bytes_taken - len(self._head) - len(self._tail)
        start = to_plain_text(_decode(self._head if gap else self._head + self._tail))
        end = to_plain_text(_decode(_drop_partial_line(self._tail))) if gap else PlainOutput("")
        start_text, is_start_condensed = _condense(start.text)
        end_text, is_end_condensed = _condense(end.text)
        max_lines, max_characters = self._bounds.command_lines, self._bounds.command_characters
        is_long = (
            len(start_text) > max_characters or count_bytes(start_text) > self._bounds.command_bytes
        )
        is_cut = bool(gap) or is_long or count_lines(start_text) > max_lines
        is_condensed = is_start_condensed or is_end_condensed
        is_reduced = start.is_reduced or end.is_reduced or is_condensed
        if (is_cut or is_reduced) and self.path is None and not self._failure:
            self._open_file()
            self.close()
        screen_text = self.read_recent()
        self._clear()
        if is_cut:
            # A third of the room for the head, the rest for the tail: results and errors come last.
            head = cut_text(start_text, max_lines // 3, max_characters // 3, "head").head
            rest = end_text if gap else start_text[len(head) :]
            tail = cut_text(rest, max_lines // 3 * 2, max_characters // 3 * 2, "tail")
            tail_text = tail.tail if tail.is_cut else tail.head
            missing = (
                gap
                + count_bytes(start.text)
                + count_bytes(end.text)
                - count_bytes(head)
                - count_bytes(tail_text)
            )
            text = f"{head.rstrip()}\n\n[... {missing} bytes left out; {self._describe_file()} ...]\n\n{tail_text}"
        elif is_reduced:
            how = "where it says `...` lines were left out" if is_condensed else _OVERWRITTEN_NOTE
            text = f"{start_text.rstrip()}\n\n[{how}; {self._describe_file()}]"
        else:
            text = start_text
        return TakenOutput(
            text, screen_text, is_cut, path=self.path if is_cut or is_reduced else None
        )

    def keep_whole(self) -> None:
        """Have the file hold the whole output, whatever is left out of it."""
        if self.path is None and not self._failure:
            self._open_file()

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _clear(self) -> None:
        self._bytes_taken = self.total
        self._head.clear()
        self._tail.clear()

    def _describe_file(self) -> str:
        if not self.path:
            return f"not saved: {self._failure}"
        extent = (
            f", up to its first {SHELL_FILE.value} bytes" if self.total > SHELL_FILE.value else ""
        )
        return f"the whole is in {shorten_output(self.path)}{extent}"

    def _open_file(self) -> None:
        try:
            self.path, self._file = create_output_file(self.folder)
        except OSError as error:
            self._failure = str(error)
            return
        self._write_to_file(bytes(self._head + self._tail))

    def _write_to_file(self, chunk: bytes) -> None:
        remaining_bytes = SHELL_FILE.value - self._bytes_stored
        if self._file < 0 or remaining_bytes <= 0:
            return
        try:
            write_all(self._file, chunk[:remaining_bytes])
        except OSError as error:
            self.close()
            self._failure = str(error)
            self.path = None
            return
        self._bytes_stored += len(chunk[:remaining_bytes])


class OutputThrottle:
    """Calls `show` with the latest output after a change, at most once every SHELL_REPORT."""

    def __init__(self, buffer: OutputBuffer, show: Callable[[str], None]) -> None:
        self._buffer = buffer
        self._show = show
        self._timer: asyncio.TimerHandle | None = None

    def notify(self) -> None:
        """Report that there is more output."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(
                SHELL_REPORT.seconds, self._show_output
            )

    def close(self) -> None:
        """Stop showing."""
        if self._timer is not None:
            self._timer.cancel()

    def _show_output(self) -> None:
        self._timer = None
        self._show(self._buffer.read_recent())


def _condense(text: str) -> tuple[str, bool]:
    """Do what `condense_output` does, of which a short output has nothing."""
    if len(text) < _SHORT_CHARS and "npm " not in text and "[notice] " not in text:
        return text, False
    # Imported late: the tables of test runners are large.
    from codeloop.workspace.process.condensed_output import condense_output

    return condense_output(text)


def _drop_partial_line(tail: bytearray) -> bytearray:
    """Return the tail from its first whole line on, or all of it if its first line is long."""
    return tail[tail.find(b"\n", 0, 4096) + 1 :]


def _decode(raw: bytearray | bytes) -> str:
    """Decode UTF-8, with replacement characters for invalid bytes and for NUL."""
    return raw.decode("utf-8", "replace").replace("\0", "\ufffd")
