"""The table of commands, each loaded when it is called."""

import os
import sys
from importlib import import_module
from typing import Any

import click

from codeloop import __version__
from codeloop.cli.early import INTERRUPTED
from codeloop.schema.errors import CodeloopError

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("codeloop.cli.run:run", "Work on a task in the current directory."),
    "demo": ("codeloop.cli.demo:demo", "See a recorded model fix a real bug with the real tools."),
    "serve": ("codeloop.cli.serve:serve", "Let other programs drive the agent over HTTP."),
    "attach": ("codeloop.cli.attach:attach", "Work on a running server, line by line."),
    "models": ("codeloop.cli.models:models", "List models with limits and prices."),
    "auth": ("codeloop.cli.auth:auth", "Store, list and remove keys of providers."),
    "session": ("codeloop.cli.session:session", "List, show, search, fork and delete sessions."),
    "stats": ("codeloop.cli.stats:stats", "Show cost and tokens by day, model and project."),
    "agent": ("codeloop.cli.agent:agent", "List agents and make new ones."),
    "undo": ("codeloop.cli.undo:undo", "Take back what the last turn did to files."),
    "redo": ("codeloop.cli.undo:redo", "Take the undo back."),
    "export": ("codeloop.cli.export:export", "Write a session as JSON."),
    "import": ("codeloop.cli.importing:import_", "Read a session from JSON."),
    "trust": ("codeloop.cli.trust:trust", "Let this directory's own configuration loosen and execute."),
    "debug": ("codeloop.cli.debug:debug", "Show configuration, paths and limits."),
}


class Commands(click.Group):
    """A group that imports a command's module only when it is called; help needs none of them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; Ctrl-C ends it with the documented code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("codeloop: Interrupted.", err=True)
            sys.exit(INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the names in the table's order."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        del ctx
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        module, _, name = row[0].partition(":")
        return getattr(import_module(module), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def app() -> None:
    """codeloop, an open coding agent."""


def call() -> None:
    """Run the command that was typed. What goes wrong is told in a line or two: bad input never shows a traceback."""
    if "CODELOOP_FAULT" in os.environ and (problem := import_module("codeloop.kit.fault").problem()):
        click.echo(f"codeloop: {problem}", err=True)
        sys.exit(2)
    try:
        app(prog_name="codeloop")
    except CodeloopError as error:
        code = import_module("codeloop.cli.exits").of_error(error)
        click.echo(f"codeloop: {error}", err=True)
        sys.exit(code)
