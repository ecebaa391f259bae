"""Asks whether to trust a project when it is opened, if there is a terminal to ask at."""

from collections.abc import Awaitable, Callable
from typing import Any

from codeloop.cli.output.streams import OutputStream

TrustPrompt = Callable[[Any, Any], Awaitable[bool]]
"""Asks the user whether to trust a project, and returns the answer.

Its arguments are a `ProjectSettings`, and the `TrustChange`s to show. The first class is not
imported: `--attach` needs none of the modules that it needs. The terminal UI gets the text of the
question instead (`AskTrust` of `tui/settings/ui_launch.py`).
"""


def make_trust_prompt(terminal: OutputStream | None) -> TrustPrompt | None:
    """Return a function that asks for trust at a terminal; None without a terminal."""
    if terminal is None:
        return None

    async def ask_trust(settings: Any, changes: Any) -> bool:
        # Most projects need not be asked about.
        from codeloop.cli.questions.terminal_questions import ask_trust as ask_at_terminal

        return await ask_at_terminal(terminal, settings, changes)

    return ask_trust
