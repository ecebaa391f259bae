"""`codeloop compare`: sends a prompt to several models, each in a work tree of its own,
and compares the results.
"""

import asyncio
import sys
from contextlib import suppress
from typing import Any

import click

from codeloop.cli.option_values import Options
from codeloop.cli.options import (
    AUTO_OPTION,
    BASE_OPTION,
    DIR_OPTION,
    JSON_OPTION,
    PROFILE_OPTION,
    TRUST_OPTION,
    make_completion,
)
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.conversation_target import open_conversation
from codeloop.cli.target.selection import prepare_session
from codeloop.client.client import Client, belongs_to
from codeloop.client.slash.compare import Comparison, ModelResult, format_comparison, run_comparison
from codeloop.client.target import Target
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.api.answers import (
    PERMISSION_REPLY,
    QUESTION_REJECT,
    AnswerPermission,
    RejectQuestion,
)
from codeloop.schema.api.session_inputs import RunLimits
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.event import PermissionAsked, QuestionAsked
from codeloop.schema.message import Session
from codeloop.schema.permission import AUTO_MESSAGE, NOBODY_MESSAGE, Reply
from codeloop.schema.resources import Worktree

MODELS_OPTION = click.option(
    "-m",
    "--model",
    "models",
    metavar="PROVIDER/MODEL",
    multiple=True,
    required=True,
    shell_complete=make_completion("model"),
    help="Model to use; at least twice.",
)


@click.command()
@click.argument("message", nargs=-1, required=True)
@MODELS_OPTION
@click.option(
    "--check",
    metavar="COMMAND",
    help="Run this in each work tree after the turn, and show if it passed.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    metavar="DOLLARS",
    help="Stop each turn at this cost.",
)
@BASE_OPTION
@AUTO_OPTION
@PROFILE_OPTION
@TRUST_OPTION
@DIR_OPTION
@JSON_OPTION
def compare(
    *, message: tuple[str, ...], models: tuple[str, ...], as_json: bool, **flags: Any
) -> None:
    """Send MESSAGE to several models at once, and show diffs, checks, cost and time side by side.

    Each works in a work tree of its own. The model's questions are refused, and permissions too
    unless --auto approves them. Exit code 1: no model ended well and passed the check.
    """
    comparison = Comparison(
        prompt=" ".join(message),
        models=models,
        check=flags.pop("check"),
        base=flags.pop("base"),
        limits=RunLimits(cost=flags.pop("max_cost"), attended=False),
    )
    rows = asyncio.run(_compare_models(Options(message=message, **flags), comparison))
    if as_json:
        print_json(rows)
    else:
        click.echo(
            escape_controls(
                "\n".join(format_comparison(rows, is_checked=comparison.check is not None))
            )
        )
    # `check` is an exit code: 0 has passed.
    if all(row.problem or row.check for row in rows):
        sys.exit(1)


async def _compare_models(options: Options, comparison: Comparison) -> list[ModelResult]:
    session_ids: set[str] = set()

    async def create_session(client: Client, tree: Worktree) -> Session:
        click.echo(escape_controls(f"codeloop: {tree.name}: {tree.directory}"), err=True)
        session = await prepare_session(client, options, None)
        session_ids.add(session.id)
        return session

    async with open_conversation(options) as target:
        answer_task = asyncio.create_task(
            _answer_requests(target, session_ids, is_auto=options.auto)
        )
        try:
            return await run_comparison(target, comparison, create_session)
        finally:
            answer_task.cancel()
            with suppress(asyncio.CancelledError):
                await answer_task


async def _answer_requests(target: Target, session_ids: set[str], *, is_auto: bool) -> None:
    """Answer the requests of these sessions and their subagents, as long as the task runs.

    Permissions are given with `is_auto`; everything else is refused. Requests of other sessions are
    left to the user, who may have them in another terminal.
    """
    reply: Reply = "once" if is_auto else "reject"
    message = AUTO_MESSAGE if is_auto else NOBODY_MESSAGE
    async for stamped_event in target.client.follow():
        event = stamped_event.event
        if not isinstance(event, PermissionAsked | QuestionAsked):
            continue
        request = event.properties
        # The request may have been answered by another client, or withdrawn, in the meantime.
        with suppress(OperationError):
            belongs_to_any = [
                await belongs_to(target.client, request.session_id, each) for each in session_ids
            ]
            if not any(belongs_to_any):
                continue
            # Each session works in a work tree of its own, whose directory answers its requests.
            session = await target.client.call(
                SESSION_GET, SessionId(session_id=request.session_id)
            )
            client = target.get_directory_client(session.directory)
            if isinstance(event, PermissionAsked):
                answer = AnswerPermission(request_id=request.id, reply=reply, message=message)
                await client.call(PERMISSION_REPLY, answer)
            else:
                await client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id))
