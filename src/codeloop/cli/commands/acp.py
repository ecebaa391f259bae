"""`codeloop acp`: serves an editor over stdin and stdout, by the Agent Client Protocol."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from codeloop.acp.agent import AcpLaunch, serve_editor
from codeloop.acp.editor_buffers import EditorBuffers
from codeloop.acp.terminals.editor_terminals import EditorTerminals
from codeloop.cli.bootstrap import cancel_on_signals
from codeloop.cli.option_values import Options
from codeloop.cli.options import (
    AGENT_OPTION,
    CONFIG_OPTION,
    LOG_LEVEL_OPTION,
    MODEL_OPTION,
    OFFLINE_OPTION,
    PRINT_LOGS_OPTION,
    PROFILE_OPTION,
    TRUST_OPTION,
    VARIANT_OPTION,
)
from codeloop.cli.target.process_log import open_log
from codeloop.client.client import Client

if TYPE_CHECKING:
    from codeloop.cli.target.editor_projects import EditorProjects


@click.command("acp")
@MODEL_OPTION
@VARIANT_OPTION
@AGENT_OPTION
@PROFILE_OPTION
@TRUST_OPTION
@OFFLINE_OPTION
@CONFIG_OPTION
@LOG_LEVEL_OPTION
@PRINT_LOGS_OPTION
@click.option(
    "--protocol",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="Newest version of the protocol to speak; 2 is a draft.",
)
@click.option(
    "--editor-terminal",
    is_flag=True,
    help="Run commands that leave the sandbox in the editor's own terminals.",
)
@click.option(
    "--login", is_flag=True, help="Ask for a service and its key in this terminal, and exit."
)
def acp(*, protocol: int, editor_terminal: bool, login: bool, **flags: Any) -> None:
    """Serve an editor that speaks the Agent Client Protocol, over stdin and stdout.

    Sessions are those of the terminal UI and of every other client. Ends when stdin ends.
    """
    if login:
        from codeloop.cli.commands.access.auth import auth

        auth.main(["login"], prog_name="codeloop auth")
        return
    options = Options(message=(), **flags)
    # A signal cancels the main task, which is not an error.
    with open_log(options), suppress(asyncio.CancelledError):
        asyncio.run(_serve_until_signal(options, protocol, uses_editor_terminals=editor_terminal))


async def _serve_until_signal(
    options: Options, newest_version: int, *, uses_editor_terminals: bool
) -> None:
    """Serve the editor until stdin ends or a signal comes. `newest_version`: of the protocol."""
    cancel_on_signals()
    projects: EditorProjects | None = None
    buffers = EditorBuffers()
    terminals = EditorTerminals(buffers) if uses_editor_terminals else None

    async def open_client(directory: str) -> tuple[Client, tuple[str, ...]]:
        nonlocal projects
        # Loading the modules of projects doubles the start-up time, and the editor's first request,
        # `initialize`, needs none of them.
        if projects is None:
            from codeloop.cli.target.editor_projects import EditorProjects

            projects = EditorProjects(
                options, buffers.save, terminals.run if terminals is not None else None
            )
        return await projects.open(directory)

    try:
        await serve_editor(
            AcpLaunch(
                open_client=open_client,
                buffers=buffers,
                profile=options.profile,
                agent=options.agent,
                variant=options.variant,
                newest_version=newest_version,
                terminals=terminals,
            )
        )
    finally:
        if projects is not None:
            await projects.close()
