"""Follows the output of commands for editors that show it as a terminal."""

import re

from codeloop.acp.versions.version import ProtocolVersion
from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStateError, ToolStateRunning
from codeloop.schema.wire import JSON

_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_PARTIAL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?$")
_CUT_MARK = "...\n\n"
"""What begins the latest output of a command when there was more before it."""
_OVERLAP = 200
"""Characters that have to be the same where two views of an output overlap."""


class CommandTerminal:
    """The output of one command, as far as the editor has it."""

    def __init__(self, version: ProtocolVersion, terminal_id: str, directory: str) -> None:
        self._version = version
        self._id = terminal_id
        self._directory = directory
        self._sent_output = ""
        self._is_over = False

    def begin(self, part: ToolPart) -> tuple[list[JSON], JSON]:
        """Return the updates that go before the call, and fields for the call itself."""
        return self._version.begin_terminal(self._id, str(part.state.input.get("command") or ""), self._directory)

    def advance(self, part: ToolPart) -> list[JSON]:
        """Return the updates with what is new since the last ones."""
        state, updates = part.state, list[JSON]()
        if self._is_over or not isinstance(state, ToolStateRunning | ToolStateCompleted | ToolStateError):
            return []
        metadata = state.metadata or {}
        text, is_whole = self._find_new(to_terminal(str(metadata.get("output") or "")))
        if text:
            updates.append(self._version.extend_terminal(self._id, text.replace("\n", "\r\n"), is_whole=is_whole))
        if not isinstance(state, ToolStateRunning):
            self._is_over = True
            updates.append(self._version.end_terminal(self._id, metadata.get("exit"), metadata.get("signal")))
        return updates

    def _find_new(self, output: str) -> tuple[str, bool]:
        """Return the part of an output that the editor lacks, and whether nothing else is left of it."""
        before, self._sent_output = self._sent_output, output
        if output.startswith(before):
            return output[len(before) :], False
        output = output.removeprefix(_CUT_MARK)
        at = before.rfind(output[:_OVERLAP])
        if at >= 0 and output.startswith(before[at:]):
            return output[len(before) - at :], False
        return output, True


def to_terminal(text: str) -> str:
    """Return output without sequences that steer a terminal: colours, tabs and carriage returns stay."""
    plain = _SEQUENCE.sub("", _PARTIAL_SEQUENCE.sub("", text).replace("\r\n", "\n"))
    pieces = _COLOUR.split(plain)
    return "".join(
        each if _COLOUR.fullmatch(each) else "\r".join(map(escape_controls, each.split("\r"))) for each in pieces
    )
