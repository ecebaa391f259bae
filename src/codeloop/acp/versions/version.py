"""The version of the protocol that a connection speaks, as the rest of the room uses it."""

from typing import Protocol

from codeloop.schema.wire import JSON


class Version(Protocol):
    """Writes messages in one version of the protocol.

    Updates, options and calls are passed in as version 1 has them.
    """

    number: int
    is_prompt_answered_at_once: bool
    """Whether `session/prompt` is answered when the prompt is stored; else when its turn has ended."""
    shows_terminals: bool
    """Whether the editor shows the output of a command as that of a terminal."""

    def greet(self, sign_in: JSON | None, info: JSON) -> JSON:
        """Return the answer to `initialize`. `sign_in`: how to sign in, where the editor can; `info`: who we are."""
        ...

    def adapt(self, update: JSON) -> JSON | None:
        """Return an update in this version; None: it has none for that."""
        ...

    def state(self, state: JSON) -> JSON:
        """Return a session's options and modes."""
        ...

    def diffs(self, metadata: JSON, directory: str) -> list[JSON]:
        """Return the changes of a call, made or wanted, as content; `directory`: what paths are relative to."""
        ...

    def ask(self, title: str, details: str, diffs: list[JSON], call: JSON, directory: str, /) -> JSON:
        """Return the subject of a permission request, without its options.

        `title`: the question; `call`: the call, without content; `directory`: where it works.
        """
        ...

    def begin_terminal(self, terminal_id: str, command: str, directory: str, /) -> tuple[list[JSON], JSON]:
        """Return the updates that go before a call whose command has a terminal, and fields for the call itself."""
        ...

    def extend_terminal(self, terminal_id: str, text: str, *, is_whole: bool) -> JSON:
        """Return the update with more output. `is_whole`: it is all that is left of the output, not what is new."""
        ...

    def end_terminal(self, terminal_id: str, code: int | None, signal: str | None) -> JSON:
        """Return the update that says how the command ended."""
        ...
