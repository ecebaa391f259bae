"""`ToolBounds`: how much tools show and how long commands run, as the configuration sets it."""

from msgspec import Struct

from codeloop.schema.config import CommandsConfig, ToolOutputConfig
from codeloop.schema.limits import (
    READ_BYTES,
    READ_LINES,
    SHELL_OUTPUT,
    SHELL_TIMEOUT,
    SHELL_TIMEOUT_MAX,
    TOOL_OUTPUT_BYTES,
    TOOL_OUTPUT_LINES,
)

# Room for the notes around the output of a command: for many bounds a tenth of them,
# at most this much.
_NOTE_BYTES = 4_096
_NOTE_LINES = 20


class ToolBounds(Struct, frozen=True):
    """The bounds of one project's tools. `lines` and `bytes`: of an output,
    0: each tool has its usual ones.

    `timeout_ms`: of a command that names none; `max_timeout_ms`: the longest
    that a command may name.
    """

    lines: int = 0
    bytes: int = 0
    timeout_ms: int = SHELL_TIMEOUT.value
    max_timeout_ms: int = SHELL_TIMEOUT_MAX.value

    @property
    def output_lines(self) -> int:
        """The lines of any tool's output; beyond that it is cut."""
        return self.lines or TOOL_OUTPUT_LINES.value

    @property
    def output_bytes(self) -> int:
        """The bytes of any tool's output; beyond that it is cut."""
        return self.bytes or TOOL_OUTPUT_BYTES.value

    @property
    def read_lines(self) -> int:
        """The lines of a file that one call shows."""
        return self.lines or READ_LINES.value

    @property
    def read_bytes(self) -> int:
        """The bytes of a file that one call shows."""
        return self.bytes or READ_BYTES.value

    @property
    def search_bytes(self) -> int:
        """The bytes of lines that a search shows; more is never of use,
        since another search finds the rest.
        """
        # Imported late: a text answer searches nothing.
        from codeloop.schema.bounds.outlines import SEARCH_SHOWN_BYTES

        return min(self.bytes or SEARCH_SHOWN_BYTES.value, SEARCH_SHOWN_BYTES.value)

    @property
    def command_lines(self) -> int:
        """The lines of a command's output, without the notes on it."""
        return max(self.output_lines - min(_NOTE_LINES, self.output_lines // 10), 3)

    @property
    def command_bytes(self) -> int:
        """The bytes of a command's output, without the notes on it."""
        return max(self.output_bytes - min(_NOTE_BYTES, self.output_bytes // 10), 3)

    @property
    def command_characters(self) -> int:
        """The characters of a command's output, without the notes on it."""
        return self.command_bytes if self.bytes else SHELL_OUTPUT.value


USUAL_BOUNDS = ToolBounds()


def make_tool_bounds(output: ToolOutputConfig, commands: CommandsConfig) -> ToolBounds:
    """Return the bounds of tools. A bare default timeout may exceed the usual longest one,
    which then grows with it.
    """
    timeout_ms = commands.timeout or SHELL_TIMEOUT.value
    return ToolBounds(
        lines=output.max_lines or 0,
        bytes=output.max_bytes or 0,
        timeout_ms=min(timeout_ms, commands.max_timeout or timeout_ms),
        max_timeout_ms=commands.max_timeout or max(timeout_ms, SHELL_TIMEOUT_MAX.value),
    )
