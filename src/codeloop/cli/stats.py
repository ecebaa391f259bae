"""`codeloop stats`: cost and tokens by day, model and project."""

import click


@click.command()
@click.option("--days", type=click.IntRange(min=1, max=36_500), metavar="N", help="Today and the N - 1 days before.")
@click.option("--all", "everything", is_flag=True, help="Over all projects.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def stats(*, days: int | None, everything: bool, as_json: bool) -> None:
    """Show what was spent in this project: dollars, tokens, sessions, steps and tool calls."""
    import msgspec

    from codeloop.cli.opened import with_client
    from codeloop.cli.sums import shown
    from codeloop.kit.plain import inert_json
    from codeloop.schema.operation import SESSION_STATS

    found = with_client(lambda client: client.call(SESSION_STATS, days=days, everything=everything))
    for reason in found.skipped:
        click.echo(f"Left out: {reason}", err=True)
    if as_json:
        click.echo(inert_json(msgspec.json.encode(found).decode()))
    elif not found.total.steps:
        click.echo("Nothing was done yet" + (" in this time." if days else "."), err=True)
    else:
        click.echo(shown(found))
