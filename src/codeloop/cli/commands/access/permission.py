"""`codeloop permission`: lists and revokes "always" grants,
and shows the rules and decisions of this project.
"""

import click

from codeloop.cli.group import CommandGroup
from codeloop.cli.options import JSON_OPTION, make_completion
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.project import run_with_local_client
from codeloop.cli.target.selection import find_session
from codeloop.client.formatting import format_time
from codeloop.client.local import LocalClient
from codeloop.client.slash.reports import format_permission_report
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.answers import PERMISSION_RULES
from codeloop.schema.errors import UsageProblem
from codeloop.schema.limits import STORE_DECISIONS
from codeloop.schema.permission import Decision, Grant, PermissionQuery

# Characters of a grant's or a decision's patterns on a line.
LINE_CHARS = 100
DEFAULT_LOG_ROWS = 50


@click.group(cls=CommandGroup)
def permission() -> None:
    """List and revoke what you always allow, and show what was decided."""


@permission.command("list")
@JSON_OPTION
def list_grants(*, as_json: bool) -> None:
    """List what the answer "always" allows in this project: since when, in which directory,
    from which session.
    """

    async def print_grants(client: LocalClient) -> None:
        grants = client.project.store.permissions.list_all_grants()
        if as_json:
            print_json(grants)
        elif grants:
            click.echo(
                escape_controls(
                    align_columns(
                        [("id", "since", "allows", "where", "session"), *map(_format_grant, grants)]
                    )
                )
            )
        else:
            click.echo(
                'Nothing is always allowed in this project. The answer "always" to a question adds to it.'
            )

    run_with_local_client(print_grants)


@permission.command()
@click.option(
    "-s",
    "--session",
    metavar="ID",
    shell_complete=make_completion("session"),
    help="As they count in a session.",
)
@click.option(
    "--agent", metavar="NAME", shell_complete=make_completion("agent"), help="For this agent."
)
@JSON_OPTION
def rules(session: str | None, agent: str | None, *, as_json: bool) -> None:
    """List the rules that count, in their order, each with where it is written.

    In each list the last that matches decides; a call must pass every list.
    """

    async def print_rules(client: LocalClient) -> None:
        session_id = (await find_session(client, session)).id if session is not None else None
        permissions_in_force = await client.call(
            PERMISSION_RULES, PermissionQuery(session_id=session_id, agent=agent)
        )
        if as_json:
            print_json(permissions_in_force)
        else:
            click.echo(escape_controls("\n".join(format_permission_report(permissions_in_force))))

    run_with_local_client(print_rules)


@permission.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=make_completion("grant"))
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="Revoke everything that is always allowed in this project.",
)
def revoke(ids: tuple[str, ...], *, is_all: bool) -> None:
    """Revoke what you always allowed, by its ID: it is asked again from the next call on."""
    if bool(ids) == is_all:
        raise UsageProblem(
            "Give the ids to revoke, or --all. `codeloop permission list` shows them."
        )

    async def revoke_grants(client: LocalClient) -> None:
        permissions = client.project.store.permissions
        grant_ids = [grant.id for grant in permissions.list_all_grants()]
        # All ids are checked first, so that a wrong one revokes nothing.
        for grant_id in ids:
            if grant_id not in grant_ids:
                close = format_suggestion(find_similar(grant_id, grant_ids, most_edits=2))
                raise UsageProblem(f"Nothing is always allowed under {grant_id}.{close}")
        permissions.revoke(grant_ids if is_all else ids)
        click.echo(f"Revoked: {len(grant_ids if is_all else set(ids))}")

    run_with_local_client(revoke_grants)


@permission.command()
@click.option(
    "-s",
    "--session",
    metavar="ID",
    shell_complete=make_completion("session"),
    help="Only those of a session.",
)
@click.option("--denied", is_flag=True, help="Only what was denied.")
@click.option(
    "-n",
    "limit",
    type=click.IntRange(1, STORE_DECISIONS.value),
    default=DEFAULT_LOG_ROWS,
    help="How many, at most.",
)
@JSON_OPTION
def log(session: str | None, limit: int, *, denied: bool, as_json: bool) -> None:
    """Show the latest decisions, each with the rule that decided, where it is written,
    and who answered.
    """

    async def print_decisions(client: LocalClient) -> None:
        session_id = (await find_session(client, session)).id if session is not None else None
        decisions = client.project.store.permissions.list_decisions(
            session_id, denied=denied, limit=limit
        )
        if as_json:
            print_json(decisions)
        else:
            click.echo(
                escape_controls("\n".join(map(_format_decision, decisions)))
                or "Nothing was decided yet: no call has needed a permission."
            )

    run_with_local_client(print_decisions)


def _format_grant(grant: Grant) -> tuple[str, str, str, str, str]:
    # For pages of a private network, `place` is the host's address;
    # for all else, the directory that the grant is for.
    is_host = grant.permission == "webfetch_private"
    address = f" ({grant.place})" if is_host and grant.place else ""
    allows = one_line(f"{grant.permission} {', '.join(grant.patterns)}{address}", LINE_CHARS)
    where = (not is_host and grant.place) or grant.directory or "its session only"
    return grant.id, format_time(grant.time), allows, where, grant.session_id


def _format_decision(decision: Decision) -> str:
    rule = decision.rule
    notes = [*decision.traits, *([f"unproven: {decision.unproven}"] if decision.unproven else [])]
    note_text = f"  ({', '.join(notes)})" if notes else ""
    rule_text = f"{rule.permission} {rule.pattern}: {rule.action}" if rule else "no rule"
    subject = one_line(", ".join(decision.patterns), LINE_CHARS)
    first = f"{format_time(decision.time)}  {decision.action:5}  {decision.permission}  {subject}{note_text}"
    return f"{first}\n    by {decision.by}; {rule_text}, {decision.origin}; {decision.session_id}"
