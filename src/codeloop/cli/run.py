"""`codeloop run`: one task from the command line, to its end."""

import sys
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from codeloop.cli.early import wants_json


class Options(Struct, frozen=True, kw_only=True):
    """The flags of `run`."""

    message: tuple[str, ...]
    directory: Path | None = None
    attach: str | None = None
    username: str | None = None
    password: str | None = None
    model: str | None = None
    agent: str | None = None
    go_on: bool = False
    session: str | None = None
    fork: bool = False
    at: str | None = None
    command: str | None = None
    title: str | None = None
    format: str = "text"
    files: tuple[Path, ...] = ()
    max_steps: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    auto: bool = False
    trust: bool = False
    thinking: bool = False
    no_compact: bool = False
    config: Path | None = None
    record: Path | None = None
    replay: Path | None = None
    pace: float = 0.0


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
                from codeloop.cli.signals import tell

                tell("json", error.exit_code, "error", error.format_message())
            raise


@click.command(cls=RunCommand)
@click.argument("message", nargs=-1)
@click.option("-m", "--model", metavar="PROVIDER/MODEL", help="The model to use.")
@click.option("--agent", metavar="NAME", help="The agent to use.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with this directory's last session.")
@click.option("-s", "--session", metavar="ID", help="Go on with a session.")
@click.option("--fork", is_flag=True, help="Go on with a copy of the session; it stays as it is.")
@click.option("--at", metavar="MESSAGE", help="With --fork: copy what is before this message (its id, or N: prompt N).")
@click.option("--command", metavar="NAME", help="Run a command; MESSAGE is what follows its name.")
@click.option("--title", help="Title of a new session.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="Text, or JSON Lines.")
@click.option("-f", "--file", "files", type=FILE, multiple=True, help="Attach a file; may be repeated.")
@click.option("--max-steps", type=click.IntRange(min=1), help="At most so many requests to the model.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="DOLLARS", help="Stop when this is spent.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Stop when so many tokens are used.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Stop after this time.")
@click.option("--auto", is_flag=True, help="Say yes to every question; denials stay.")
@click.option("--trust", is_flag=True, help="Trust this directory's configuration, this once.")
@click.option("--no-compact", is_flag=True, help="Never summarise a conversation that gets too long.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
@click.option("--dir", "directory", type=click.Path(path_type=Path, readable=False), help="Work in this directory.")
@click.option("--attach", metavar="URL", help="Work on a running server; --dir may be a directory of it.")
@click.option("-u", "--username", metavar="NAME", help="With --attach: the user name; else as the server says.")
@click.option("-p", "--password", help="With --attach: the password; else that of your own server, or the environment.")
@click.option("--config", type=FILE, help="Read this configuration file too.")
@click.option("--record", type=FILE, help="Write what the model answers to a file.")
@click.option("--replay", type=FILE, help="Let a recording answer in the model's place.")
def run(**flags: Any) -> None:
    """Work on a task in the current directory, or on a running server.

    The message is what MESSAGE says, or stdin when there is none or it is `-`.
    Exit codes: 0 done, 1 error, 2 usage, 3 provider, 4 limit, 5 denied, 124 timeout, 130 interrupted.
    """
    from codeloop.cli.signals import to_the_end

    options = Options(**flags)

    def command() -> int:
        import asyncio

        from codeloop.cli.execute import check_flags, execute
        from codeloop.cli.message import message_of

        check_flags(options)
        if options.attach is None:
            from codeloop.cli.here import here as reach
        else:
            from codeloop.cli.there import there as reach
        return asyncio.run(execute(options, message_of(options), reach))

    sys.exit(to_the_end(options.format, command))
