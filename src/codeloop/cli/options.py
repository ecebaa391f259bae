"""The click options that several commands share."""

from collections.abc import Callable, Mapping, Sequence
from os import environ
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from codeloop.kit.lazy import load_object
from codeloop.net.hosts import OFFLINE_VARIABLE
from codeloop.schema.permission import FORMER_PROFILES, PROFILES

# The function of `codeloop.cli.completion_values` that completes each kind of parameter,
# loaded when Tab is pressed.
COMPLETION_FUNCTIONS = {
    "session": "complete_sessions",
    "archived": "complete_archived_sessions",
    "agent": "complete_agents",
    "command": "complete_commands",
    "model": "complete_models",
    "grant": "complete_grants",
}


def make_completion(
    kind: str,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]:
    """Return a function for `shell_complete` of a parameter;
    `kind`: a key of `COMPLETION_FUNCTIONS`.
    """
    return lambda _context, _parameter, value: load_object(
        f"cli.completion_values:{COMPLETION_FUNCTIONS[kind]}"
    )(value)


def _set_offline(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Set the environment variable of `--offline`."""
    context.meta[OFFLINE_VARIABLE] = value
    # Every module that connects reads the variable, and programs that are started inherit it.
    if value:
        environ[OFFLINE_VARIABLE] = "1"


FILE_TYPE = click.Path(path_type=Path, dir_okay=False)
# The directory may be on a server, so that click can't check it.
DIRECTORY_TYPE = click.Path(path_type=Path, readable=False)

MODEL_OPTION = click.option(
    "-m",
    "--model",
    metavar="PROVIDER/MODEL",
    shell_complete=make_completion("model"),
    help="Model to use; a unique name is enough.",
)
AGENT_OPTION = click.option(
    "--agent", metavar="NAME", shell_complete=make_completion("agent"), help="Agent to use."
)
VARIANT_OPTION = click.option(
    "--variant",
    metavar="NAME",
    help="How much the model thinks: low, high, max, ...; `default`: the model's own.",
)
CONTINUE_OPTION = click.option(
    "-c",
    "--continue",
    "continue_latest",
    is_flag=True,
    help="Resume this directory's latest session.",
)
SESSION_OPTION = click.option(
    "-s",
    "--session",
    metavar="ID",
    shell_complete=make_completion("session"),
    help="Resume a session.",
)
FORK_OPTION = click.option(
    "--fork", is_flag=True, help="Resume a copy and leave the session unchanged."
)
AUTO_OPTION = click.option(
    "--auto", is_flag=True, help="Approve every request; deny rules still apply."
)


class _ProfileChoice(click.Choice[str]):
    """A choice of profiles that takes their former names, too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the profile's name. Raises click.BadParameter."""
        return super().convert(FORMER_PROFILES.get(value, value), param, ctx)


PROFILE_OPTION = click.option(
    "--profile", type=_ProfileChoice(PROFILES), help="What the session may do without asking."
)
TRUST_OPTION = click.option(
    "--trust", is_flag=True, help="Trust this directory's configuration, for this run only."
)
PROMPT_OPTION = click.option(
    "--prompt", metavar="TEXT", help="Begin with this prompt, as with the words of PROMPT."
)
PLAIN_OPTION = click.option(
    "--plain", is_flag=True, help="Converse line by line, as in a simple terminal."
)
THINKING_OPTION = click.option("--thinking", is_flag=True, help="Show the model's thinking.")
OFFLINE_OPTION = click.option(
    "--offline",
    is_flag=True,
    expose_value=False,
    callback=_set_offline,
    help="Reach this machine and private networks only.",
)
DIR_OPTION = click.option("--dir", "directory", type=DIRECTORY_TYPE, help="Directory to work in.")
CONFIG_OPTION = click.option("--config", type=FILE_TYPE, help="Additional configuration file.")
LOG_LEVEL_OPTION = click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARN", "ERROR"], case_sensitive=False),
    help="Minimum level to log. [default: CODELOOP_LOG, log_level, else INFO]",
)
PRINT_LOGS_OPTION = click.option(
    "--print-logs", is_flag=True, help="Print the log to stderr as well."
)
USERNAME_OPTION = click.option(
    "-u", "--username", metavar="NAME", help="User name for the server. [default: the server's own]"
)
PASSWORD_OPTION = click.option(
    "-p",
    "--password",
    help="Password for the server. [default: that of your own server, else from the environment]",
)
WORKTREE_OPTION = click.option(
    "--worktree",
    metavar="[NAME]",
    # The value is optional: `--worktree` alone has the value "",
    # and the name is made from the prompt.
    is_flag=False,
    flag_value="",
    help="Work in a work tree of your repository with its own branch; created if it does not exist.",
)
BASE_OPTION = click.option(
    "--base", metavar="REF", help="With --worktree: branch or commit to begin from."
)
JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
SESSION_ARGUMENT = click.argument("name", required=False, shell_complete=make_completion("session"))
AT_OPTION = click.option(
    "--at", metavar="MESSAGE", help="Copy only what comes before MESSAGE: an id, or N for prompt N."
)


CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])


def add_options(
    options: Sequence[Callable[[Any], Any]],
) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that adds options to a command, which its help lists in this order."""

    def decorate(command: CommandFunction) -> CommandFunction:
        # Decorators apply from the bottom up, and help lists options in the order from the top.
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def format_flags(flags: Mapping[str, object]) -> list[str]:
    """Return the values of options as words of a command line of `codeloop run`;
    those not given are left out.
    """
    words: list[str] = []
    for name, value in flags.items():
        # 0 is a limit; an empty name is none.
        if value is None or value is False or value == "":
            continue
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(f"{value:.15g}" if isinstance(value, float) else str(value))
    return words
