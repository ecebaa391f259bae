"""`CommandTerminal`: shows the output of one command as a terminal in the editor."""

import re

from codeloop.acp.versions.version import ProtocolVersion
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStateError, ToolStateRunning
from codeloop.schema.wire import JSON

# Such as `ESC [1;31m`: bold red.
_COLOUR_SEQUENCE = r"(\x1b\[[0-9;:]*m)"
# Such as `ESC [2J` (clears the screen), `ESC ]0;title BEL` (sets the title) and `ESC M` (moves the
# cursor up). The final bytes of the first kind leave out `m`, which is a colour.
_OTHER_SEQUENCE = r"\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])"
# At the end of the output, such as `ESC [1;`: the rest may come with the next update.
_PARTIAL_SEQUENCE = r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?$"
_TRUNCATION_MARK = "...\n\n"
"""Begins the latest output of a command whose earlier output was cut off."""
_MIN_OVERLAP = 200
"""Characters that are compared to find where the new output overlaps the output that was sent."""


class CommandTerminal:
    """The output of one command, for an editor that shows it as a terminal.
    The methods return updates to send.
    """

    def __init__(self, version: ProtocolVersion, terminal_id: str, directory: str) -> None:
        self._version = version
        self._id = terminal_id
        self._directory = directory
        self._sent_output = ""
        self._has_ended = False

    def begin(self, part: ToolPart) -> tuple[list[JSON], JSON]:
        """Return the updates to send before the call,
        and fields of the call that refer to the terminal.
        """
        return self._version.begin_terminal(
            self._id, str(part.state.input.get("command") or ""), self._directory
        )

    def advance(self, part: ToolPart) -> list[JSON]:
        """Return the updates with the output since the last call,
        and with the end of the command.
        """
        state, updates = part.state, list[JSON]()
        if self._has_ended or not isinstance(
            state, ToolStateRunning | ToolStateCompleted | ToolStateError
        ):
            return []
        metadata = state.metadata or {}
        text, is_whole = self._find_new_text(strip_sequences(str(metadata.get("output") or "")))
        if text:
            updates.append(
                self._version.extend_terminal(
                    self._id, text.replace("\n", "\r\n"), is_whole=is_whole
                )
            )
        if not isinstance(state, ToolStateRunning):
            self._has_ended = True
            updates.append(
                self._version.end_terminal(self._id, metadata.get("exit"), metadata.get("signal"))
            )
        return updates

    def _find_new_text(self, output: str) -> tuple[str, bool]:
        """Return the output that was not sent yet, and whether it replaces all earlier output."""
        sent, self._sent_output = self._sent_output, output
        if output.startswith(sent):
            return output[len(sent) :], False
        # Of a long output the call has only the end, so it no longer begins with what
        # was sent: find the overlap.
        output = output.removeprefix(_TRUNCATION_MARK)
        overlap_start = sent.rfind(output[:_MIN_OVERLAP])
        if overlap_start >= 0 and output.startswith(sent[overlap_start:]):
            return output[len(sent) - overlap_start :], False
        return output, True


def strip_sequences(text: str) -> str:
    """Return a text without the sequences that control a terminal.
    Colours, tabs and carriage returns stay.
    """
    # A command must not move the cursor, change the title or write to the clipboard
    # in the user's editor.
    plain = re.sub(_OTHER_SEQUENCE, "", re.sub(_PARTIAL_SEQUENCE, "", text).replace("\r\n", "\n"))
    return "".join(
        piece
        if re.fullmatch(_COLOUR_SEQUENCE, piece)
        else "\r".join(map(escape_controls, piece.split("\r")))
        for piece in re.split(_COLOUR_SEQUENCE, plain)
    )
