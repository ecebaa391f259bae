"""`codeloop acp`: an editor shows and steers sessions over stdin and stdout."""

import asyncio
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

import click

from codeloop.acp.agent import AcpLaunch, serve_editor
from codeloop.app.app import App
from codeloop.app.app_client import AppClient
from codeloop.app.extended.settled import wait_settled, with_warnings
from codeloop.cli.bootstrap import list_end_signals
from codeloop.cli.options import CONFIG, LOG_LEVEL, MODEL, OFFLINE, PRINT_LOGS, PROFILE, TRUST, Options
from codeloop.cli.target.local import startup_of
from codeloop.cli.target.log import log_of
from codeloop.client.client import Client


@click.command("acp")
@MODEL
@PROFILE
@TRUST
@OFFLINE
@CONFIG
@LOG_LEVEL
@PRINT_LOGS
@click.option("--login", is_flag=True, help="Ask for a service and its key in this terminal, and exit.")
def acp(*, login: bool, **flags: Any) -> None:
    """Serve an editor that speaks the Agent Client Protocol, over stdin and stdout.

    Sessions are those of the terminal UI and of every other client. Ends when stdin ends.
    """
    if login:
        from codeloop.cli.commands.auth import auth

        auth.main(["login"], prog_name="codeloop auth")
        return
    options = Options(message=(), **flags)
    with log_of(options), suppress(asyncio.CancelledError):
        asyncio.run(_until_signal(options))


async def _until_signal(options: Options) -> None:
    """Serve; a signal ends it as the end of stdin does."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    for number in list_end_signals():
        loop.add_signal_handler(number, lambda: task.cancel() if task is not None else None)
    app = App(startup_of(options, None), idle=inf)

    async def open_client(directory: str) -> tuple[Client, tuple[str, ...]]:
        project = await app.project(Path(directory))
        if await wait_settled(project):
            project = with_warnings(await app.project(Path(directory)), project)
        project.refresh_catalog()
        return AppClient(app, Path(directory)), tuple(project.settings.loaded.warnings)

    try:
        await serve_editor(AcpLaunch(open_client, options.profile))
    finally:
        await app.close()
