"""`codeloop attach`: a conversation with a running server."""

import asyncio
import sys
from typing import Any

import click

from codeloop.cli.chat.start import converse, has_screen
from codeloop.cli.options import (
    AGENT,
    BASE,
    CONTINUE,
    DIRECTORY,
    FORK,
    MODEL,
    PASSWORD,
    PLAIN,
    PROFILE,
    SESSION,
    THINKING,
    USERNAME,
    WORKTREE,
    Options,
)
from codeloop.cli.target.remote import open_remote


@click.command()
@click.argument("url")
@click.option("--dir", "directory", type=DIRECTORY, help="Directory on the server to work in.")
@CONTINUE
@SESSION
@FORK
@USERNAME
@PASSWORD
@AGENT
@MODEL
@PROFILE
@THINKING
@PLAIN
@WORKTREE
@BASE
def attach(url: str, **flags: Any) -> None:
    """Start a conversation on the server at URL: type a prompt, or /help for other commands.

    Without a terminal, each line of stdin is a prompt, answered before the next one is sent.
    """
    options = Options(message=(), attach=url, **flags)
    if options.worktree is not None or options.base is not None:
        from codeloop.cli.target.worktree import in_worktree

        options = in_worktree(options)
    if has_screen(options):
        from codeloop.cli.terminal_ui import show_terminal_ui

        sys.exit(show_terminal_ui(options))
    sys.exit(asyncio.run(converse(options, open_remote)))
