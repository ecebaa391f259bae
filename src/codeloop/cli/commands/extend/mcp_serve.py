"""`codeloop mcp serve`: an MCP server over stdin and stdout,
by which other agents and editors prompt codeloop.
"""

import asyncio
from contextlib import suppress
from typing import Any

import click

from codeloop.cli.bootstrap import cancel_on_signals
from codeloop.cli.option_values import Options
from codeloop.cli.options import (
    AGENT_OPTION,
    AUTO_OPTION,
    CONFIG_OPTION,
    DIR_OPTION,
    MODEL_OPTION,
    PROFILE_OPTION,
    TRUST_OPTION,
)
from codeloop.cli.target.local import open_local
from codeloop.cli.target.selection import (
    check_agent,
    find_local_session,
    parse_model,
    prepare_session,
    set_profile,
)
from codeloop.client.client import Client
from codeloop.client.mcp_server.serve import ServeLaunch, serve_stdio
from codeloop.client.mcp_server.served_sessions import PromptOptions
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.api.session_inputs import RunLimits
from codeloop.schema.message import Session


@click.command("serve")
@MODEL_OPTION
@AGENT_OPTION
@AUTO_OPTION
@PROFILE_OPTION
@TRUST_OPTION
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    help="Maximum number of requests to the model, per prompt.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    metavar="DOLLARS",
    help="Stop a prompt at this cost.",
)
@click.option(
    "--max-tokens", type=click.IntRange(min=1), help="Stop a prompt at this number of tokens."
)
@DIR_OPTION
@CONFIG_OPTION
def serve(**flags: Any) -> None:
    """Serve this directory to another agent or an editor, as an MCP server over stdin and stdout.

    Its tools are prompt, continue, status and stop. What a session asks is put to the client's
    user, or denied when the client can't ask. Ends when stdin ends.
    """
    options = Options(message=(), **flags)
    limits = RunLimits(steps=options.max_steps, cost=options.max_cost, tokens=options.max_tokens)
    prompt_options = PromptOptions(
        agent=options.agent, model=parse_model(options.model), limits=limits, auto=options.auto
    )

    async def create_session(client: Client) -> Session:
        await check_agent(client, options.agent)
        return await prepare_session(client, options, None)

    async def resume_session(client: Client, session_id: str) -> Session:
        return await set_profile(
            client, await find_local_session(client, session_id), options.profile
        )

    def print_note(line: str) -> None:
        # stdout belongs to the protocol.
        click.echo(escape_controls(line), err=True)

    launch = ServeLaunch(
        open_target=lambda: open_local(options),
        create_session=create_session,
        resume_session=resume_session,
        prompts=prompt_options,
        write_note=print_note,
    )
    # A signal cancels the main task, which is not an error.
    with suppress(asyncio.CancelledError):
        asyncio.run(_serve_until_signal(launch))


async def _serve_until_signal(launch: ServeLaunch) -> None:
    """Serve until stdin ends or a signal comes."""
    cancel_on_signals()
    await serve_stdio(launch)
