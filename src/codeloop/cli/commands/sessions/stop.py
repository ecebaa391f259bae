"""`codeloop stop --all`: stops everything that is worked on."""

import sys

import click

from codeloop.cli.options import JSON
from codeloop.cli.output.style import print_json
from codeloop.cli.target.target import with_client
from codeloop.kit.terminal_text import one_line
from codeloop.schema.operation import STOP_ALL, NoArguments

WIDTH = 60
"""Characters of a title."""


@click.command()
@click.option("--all", "everything", is_flag=True, required=True, help="Stop the turns of all projects.")
@JSON
def stop(*, everything: bool, as_json: bool) -> None:
    """Stop what your servers, terminals and runs on this machine work on, of every project.

    What was done is kept, and each session can be resumed. Exit code 1: something did not stop.
    """
    del everything
    found = with_client(lambda client: client.call(STOP_ALL, NoArguments()))
    if as_json:
        print_json(found)
    else:
        for word, sessions in (("stopped", found.stopped), ("still running", found.left)):
            for each in sessions:
                click.echo(f"{word}  {each.id}  {one_line(each.title, WIDTH)}  {each.directory}")
        if not found.stopped and not found.left:
            click.echo("Nothing was running.", err=True)
    if found.left:
        sys.exit(1)
