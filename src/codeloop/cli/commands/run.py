"""`codeloop run`: one task from the command line, to its end."""

import sys
from pathlib import Path
from typing import Any

import click

from codeloop.cli.bootstrap import wants_json
from codeloop.cli.group import completed
from codeloop.cli.lazy import load
from codeloop.cli.run.options import Options

FILE = click.Path(path_type=Path, dir_okay=False)


class RunCommand(click.Command):
    """`run`: a wrong call has a result too when JSON is asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the flags."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if wants_json(given):
                load("run.signals:tell")("json", error.exit_code, "error", load("usage_errors:problem_of")(error))
            raise


@click.command(cls=RunCommand)
@click.argument("message", nargs=-1)
@click.option("-m", "--model", metavar="PROVIDER/MODEL", shell_complete=completed("model"), help="The model to use.")
@click.option("--agent", metavar="NAME", shell_complete=completed("agent"), help="The agent to use.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with this directory's last session.")
@click.option("-s", "--session", metavar="ID", shell_complete=completed("session"), help="Go on with a session.")
@click.option("--fork", is_flag=True, help="Go on with a copy of the session; it stays as it is.")
@click.option("--at", metavar="MESSAGE", help="With --fork: copy what is before this message (its id, or N: prompt N).")
@click.option(
    "--command",
    metavar="NAME",
    shell_complete=completed("command"),
    help="Run a command; MESSAGE is what follows its name.",
)
@click.option("--title", help="Title of a new session.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="Text, or JSON Lines.")
@click.option("-f", "--file", "files", type=FILE, multiple=True, help="Attach a file; may be repeated.")
@click.option("--max-steps", type=click.IntRange(min=1), help="At most so many requests to the model.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="DOLLARS", help="Stop when this is spent.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Stop when so many tokens are used.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Stop after this time.")
@click.option("--auto", is_flag=True, help="Say yes to every question; denials stay.")
@click.option("--trust", is_flag=True, help="Trust this directory's configuration, this once.")
@click.option("--no-wait", is_flag=True, help="Do not wait for subagents in the background: end them.")
@click.option("--no-compact", is_flag=True, help="Never summarise a conversation that gets too long.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
@click.option("--dir", "directory", type=click.Path(path_type=Path, readable=False), help="Work in this directory.")
@click.option("--attach", metavar="URL", help="Work on a running server; --dir may be a directory of it.")
@click.option("-u", "--username", metavar="NAME", help="With --attach: the user name; else as the server says.")
@click.option("-p", "--password", help="With --attach: the password; else that of your own server, or the environment.")
@click.option("--config", type=FILE, help="Read this configuration file too.")
@click.option("--record", type=FILE, help="Write what the model answers to a file.")
@click.option("--force", is_flag=True, help="With --record: replace the file.")
@click.option("--replay", type=FILE, help="Let a recording answer in the model's place.")
def run(**flags: Any) -> None:
    """Work on a task in the current directory, or on a running server.

    The message is what MESSAGE says, or stdin when there is none or it is `-`.

    Exit codes: 0 done, 1 error, 2 usage, 3 provider, 4 limit, 5 denied, 124 timeout, 130 interrupted.
    """
    sys.exit(load("run.one_shot:run_once")(Options(**flags)))
