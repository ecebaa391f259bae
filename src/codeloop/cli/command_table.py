"""The table of commands, each loaded when it is called."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from codeloop import __version__
from codeloop.cli.bootstrap import INTERRUPTED
from codeloop.cli.group import LazyGroup, completed
from codeloop.cli.lazy import load
from codeloop.kit import fault_injection
from codeloop.schema.errors import CodeloopError

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("commands.run:run", "Work on a task in the current directory."),
    "demo": ("commands.demo:demo", "See a recorded model fix a real bug with the real tools."),
    "serve": ("commands.serve:serve", "Let other programs drive the agent over HTTP."),
    "attach": ("commands.attach:attach", "Work on a running server, line by line."),
    "models": ("commands.models:models", "List models with limits and prices."),
    "auth": ("commands.auth:auth", "Store, list and remove keys of providers."),
    "session": ("commands.session.session:session", "List, show, search, fork and delete sessions."),
    "stats": ("commands.session.stats:stats", "Show cost and tokens by day, model and project."),
    "agent": ("commands.agent:agent", "List agents and make new ones."),
    "command": ("commands.command:command", "List commands, the prompts that have a name."),
    "skill": ("commands.skill:skill", "List skills."),
    "undo": ("commands.undo:undo", "Take back what the last turn did to files."),
    "redo": ("commands.undo:redo", "Take the undo back."),
    "export": ("commands.session.export:export", "Write a session as JSON."),
    "import": ("commands.session.import_:import_", "Read a session from JSON."),
    "trust": ("commands.trust:trust", "Let this directory's own configuration loosen and execute."),
    "completion": ("commands.completion:completion", "Complete commands and names in bash, zsh and fish."),
    "debug": ("commands.debug:debug", "Show configuration, paths and limits."),
}


class Commands(LazyGroup):
    """The commands; words that begin with none of them are for the conversation. Ctrl-C ends each with its code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options of a conversation, unless a command is called."""
        if args[:1] and args[0] in COMMANDS:
            return super().parse_args(ctx, args)
        ctx.allow_interspersed_args = True
        ctx.meta[IS_PROMPT] = "--" in args
        return click.Command.parse_args(self, ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("codeloop: Interrupted.", err=True)
            sys.exit(INTERRUPTED)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the two ways to call it."""
        formatter.write_usage(ctx.command_path, "[OPTIONS] [DIRECTORY] [PROMPT]...")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")


FILE = click.Path(path_type=Path, dir_okay=False)
IS_PROMPT = "codeloop.is_prompt"


@click.group(
    cls=Commands,
    rows=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("-m", "--model", metavar="PROVIDER/MODEL", shell_complete=completed("model"), help="The model to use.")
@click.option("--agent", metavar="NAME", shell_complete=completed("agent"), help="The agent to use.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Resume this directory's last session.")
@click.option("-s", "--session", metavar="ID", shell_complete=completed("session"), help="Resume a session.")
@click.option("--fork", is_flag=True, help="Resume a copy of the session; the session itself does not change.")
@click.option("--auto", is_flag=True, help="Say yes to every question; denials stay.")
@click.option("--trust", is_flag=True, help="Trust this directory's configuration, this once.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
@click.option("--dir", "directory", type=click.Path(path_type=Path, readable=False), help="Work in this directory.")
@click.option("--config", type=FILE, help="Read this configuration file too.")
@click.version_option(__version__, message="%(version)s")
@click.pass_context
def app(ctx: click.Context, **flags: Any) -> None:
    """Work with codeloop, an open coding agent.

    Without a command, a conversation begins in DIRECTORY (here, if none is given), with PROMPT as its first prompt:
    codeloop "fix the failing test". Where no terminal is, PROMPT or stdin is worked on as `codeloop run` does.
    """
    if ctx.invoked_subcommand is None:
        begin = load("chat.start:begin")
        sys.exit(begin(ctx.args, flags, tuple(COMMANDS), is_prompt=ctx.meta.get(IS_PROMPT, False)))


def call() -> None:
    """Run the command that was typed. What goes wrong is told in a line or two: bad input never shows a traceback."""
    if "CODELOOP_FAULT" in os.environ and (problem := fault_injection.problem()):
        click.echo(f"codeloop: {problem}", err=True)
        sys.exit(2)
    if "_CODELOOP_COMPLETE" in os.environ:
        load("completion.shells:register")()
    try:
        ended = app.main(prog_name="codeloop", standalone_mode=False)
    except CodeloopError as error:
        code = load("exit_codes:of_error")(error)
        click.echo(f"codeloop: {error}", err=True)
        sys.exit(code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        click.echo(f"codeloop: {load('usage_errors:problem_of')(error)}", err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("codeloop: Interrupted.", err=True)
        sys.exit(INTERRUPTED)
    sys.exit(ended if isinstance(ended, int) else 0)
