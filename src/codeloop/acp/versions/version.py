"""`ProtocolVersion`: the interface of the classes that convert messages to
a version of the protocol.
"""

from typing import Protocol

from codeloop.schema.wire import JSON


class ProtocolVersion(Protocol):
    """Converts messages from the form of version 1 to the form of one protocol version."""

    number: int
    is_prompt_answered_at_once: bool
    """True: `session/prompt` is answered when the prompt is stored.
    False: when the turn has ended.
    """
    shows_terminals: bool
    """Whether the editor shows the output of commands in terminals."""

    def build_initialize_result(self, sign_in: JSON | None, info: JSON) -> JSON:
        """Build the result of `initialize`.

        `sign_in`: the method to sign in with; None: the editor supports none.
        `info`: the name and version of codeloop.
        """
        ...

    def convert_update(self, update: JSON) -> JSON | None:
        """Convert an update; None: this version has no such update."""
        ...

    def convert_session_state(self, state: JSON) -> JSON:
        """Convert a session's options and modes."""
        ...

    def make_diff_content(self, metadata: JSON, directory: str) -> list[JSON]:
        """Convert the file changes of a call to content.
        `directory`: the base of relative paths.
        """
        ...

    def build_permission_request(
        self, *, title: str, details: str, diffs: list[JSON], call: JSON, directory: str
    ) -> JSON:
        """Build the fields of a permission request, without its options.

        `title`: the question. `details`: further text. `diffs`: the changes of files, as
        `make_diff_content` returns them. `call`: the tool call without content.
        `directory`: where the call works.
        """
        ...

    def begin_terminal(
        self, terminal_id: str, command: str, directory: str, /
    ) -> tuple[list[JSON], JSON]:
        """Return the updates that create a call's terminal, to send before the call,
        and fields to add to the call.
        """
        ...

    def extend_terminal(self, terminal_id: str, text: str, *, is_whole: bool) -> JSON:
        """Build the update with more output. `is_whole`: `text` replaces all earlier output."""
        ...

    def end_terminal(self, terminal_id: str, code: int | None, signal: str | None) -> JSON:
        """Build the update with the exit code or the signal of the command."""
        ...
