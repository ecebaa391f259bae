"""`codeloop run --background`: starts a run that goes on without the terminal,
and notices for the user about it.
"""

import asyncio
import os
import sys
from pathlib import Path

import click

from codeloop.cli.output.result import Outcome
from codeloop.client.background_run import (
    BACKGROUND_FOLDER,
    describe_background,
    start_background_run,
)
from codeloop.config.paths import find_paths
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError

_MAX_TEXT = 200


def run_in_background() -> int:
    """Start the run, print how its session is found again, and return the exit code.
    Raises CodeloopError.
    """
    arguments = [word for word in sys.argv[2:] if word != "--background"]
    folder = find_paths(os.environ).state / BACKGROUND_FOLDER
    run = asyncio.run(start_background_run(arguments, folder, Path.cwd()))
    if run.exit_code is not None:
        if run.exit_code:
            raise CodeloopError(run.message)
        click.echo(f"{run.session_id} is done already: codeloop session show {run.session_id}")
        return 0
    click.echo(describe_background(run.session_id))
    return 0


def notify_of_end(outcome: Outcome) -> None:
    """Show the user's desktop that a run in the background has ended."""
    how = "is done" if outcome.exit_code == 0 else f"has ended ({outcome.reason})"
    _notify(f"codeloop: {outcome.session_id} {how}", outcome.text or outcome.message)


def notify_of_question(session_id: str, question: str) -> None:
    """Show the user's desktop that a run in the background waits for an answer."""
    _notify(f"codeloop: {session_id} waits for you", question)


def _notify(title: str, text: str) -> None:
    from codeloop.client.notification import show_notification

    show_notification(title, one_line(text, _MAX_TEXT), {})
