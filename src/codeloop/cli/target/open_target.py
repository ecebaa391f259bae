"""Chooses how the project of a command is opened: in this process,
or with `--attach` on a running server.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from codeloop.cli.option_values import Options
from codeloop.cli.questions.trust_prompt import TrustPrompt
from codeloop.client.target import Target

OpenTarget = Callable[[Options, TrustPrompt | None], AbstractAsyncContextManager[Target]]
"""Opens the project or the server that the options name; the second argument asks for trust.
Raises CodeloopError.
"""


def choose_open_target(options: Options, *, is_conversation: bool) -> OpenTarget:
    """Return the function that opens the project of these options.

    `is_conversation`: the project stays open for many turns,
    so that its configuration may change meanwhile.
    """
    # Each of the three needs modules that the others do not need.
    if options.attach is not None:
        from codeloop.cli.target.remote import open_remote

        return open_remote
    if is_conversation:
        from codeloop.cli.target.conversation_target import open_conversation

        return open_conversation
    from codeloop.cli.target.local import open_local

    return open_local
