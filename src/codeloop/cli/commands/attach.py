"""`codeloop attach`: starts a conversation on a running server."""

import asyncio
import sys
from typing import Any

import click

from codeloop.cli.chat.start import can_show_terminal_ui, hold_conversation
from codeloop.cli.option_values import Options
from codeloop.cli.options import (
    AGENT_OPTION,
    AUTO_OPTION,
    BASE_OPTION,
    CONTINUE_OPTION,
    DIRECTORY_TYPE,
    FORK_OPTION,
    MODEL_OPTION,
    PASSWORD_OPTION,
    PLAIN_OPTION,
    PROFILE_OPTION,
    SESSION_OPTION,
    THINKING_OPTION,
    USERNAME_OPTION,
    VARIANT_OPTION,
    WORKTREE_OPTION,
)


@click.command()
@click.argument("url")
@click.option("--dir", "directory", type=DIRECTORY_TYPE, help="Directory on the server to work in.")
@CONTINUE_OPTION
@SESSION_OPTION
@FORK_OPTION
@USERNAME_OPTION
@PASSWORD_OPTION
@AGENT_OPTION
@MODEL_OPTION
@VARIANT_OPTION
@AUTO_OPTION
@PROFILE_OPTION
@THINKING_OPTION
@PLAIN_OPTION
@WORKTREE_OPTION
@BASE_OPTION
def attach(url: str, **flags: Any) -> None:
    """Start a conversation on the server at URL: type a prompt, or /help for other commands.

    Without a terminal, each line of stdin is a prompt, answered before the next one is sent.
    """
    options = Options(message=(), attach=url, **flags)
    if options.worktree is not None or options.base is not None:
        from codeloop.cli.target.worktree import move_to_worktree

        options = move_to_worktree(options)
    if can_show_terminal_ui(options):
        from codeloop.cli.terminal_ui import show_terminal_ui

        sys.exit(show_terminal_ui(options))
    sys.exit(asyncio.run(hold_conversation(options)))
