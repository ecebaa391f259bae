"""`ProtocolVersion`: the interface of the classes that convert messages to a version of the protocol."""

from typing import Protocol

from codeloop.schema.wire import JSON


class ProtocolVersion(Protocol):
    """Converts messages from the form of version 1 to the form of one protocol version."""

    number: int
    is_prompt_answered_at_once: bool
    """True: `session/prompt` is answered when the prompt is stored. False: when the turn has ended."""
    shows_terminals: bool
    """Whether the editor shows the output of commands in terminals."""

    def initialize_result(self, sign_in: JSON | None, info: JSON) -> JSON:
        """Return the result of `initialize`. `sign_in`: None if unsupported; `info`: name and version."""
        ...

    def convert_update(self, update: JSON) -> JSON | None:
        """Return an update in the form of this version; None: this version has no such update."""
        ...

    def session_state(self, state: JSON) -> JSON:
        """Return a session's options and modes in the form of this version."""
        ...

    def diff_content(self, metadata: JSON, directory: str) -> list[JSON]:
        """Convert the file changes of a call to content. `directory`: the base of relative paths."""
        ...

    def permission_request(self, title: str, details: str, diffs: list[JSON], call: JSON, directory: str, /) -> JSON:
        """Build the fields of a permission request, without its options.

        `title`: the question; `call`: the tool call without content; `directory`: the directory that the call works in.
        """
        ...

    def begin_terminal(self, terminal_id: str, command: str, directory: str, /) -> tuple[list[JSON], JSON]:
        """Return updates that create a terminal before its call is sent, and fields that connect the call to it."""
        ...

    def extend_terminal(self, terminal_id: str, text: str, *, is_whole: bool) -> JSON:
        """Return the update with more output. `is_whole`: `text` replaces all earlier output."""
        ...

    def end_terminal(self, terminal_id: str, code: int | None, signal: str | None) -> JSON:
        """Return the update with the exit code or the signal of the command."""
        ...
