"""`codeloop run`: the options of the command that runs one task and exits.
The code that runs it is in `cli/run`.
"""

import sys
from typing import Any

import click

from codeloop.cli.bootstrap import find_json_format
from codeloop.cli.group import describe_usage_error
from codeloop.cli.option_values import Options
from codeloop.cli.options import (
    AGENT_OPTION,
    AUTO_OPTION,
    BASE_OPTION,
    CONFIG_OPTION,
    CONTINUE_OPTION,
    DIR_OPTION,
    FILE_TYPE,
    FORK_OPTION,
    LOG_LEVEL_OPTION,
    MODEL_OPTION,
    OFFLINE_OPTION,
    PASSWORD_OPTION,
    PRINT_LOGS_OPTION,
    PROFILE_OPTION,
    SESSION_OPTION,
    THINKING_OPTION,
    TRUST_OPTION,
    USERNAME_OPTION,
    VARIANT_OPTION,
    WORKTREE_OPTION,
    make_completion,
)
from codeloop.net.hosts import OFFLINE_VARIABLE


def read_output_format(
    ctx: click.Context, _parameter: click.Parameter, form: str | None
) -> str | None:
    """Convert the value of --output-format to one of `Options.format`.
    Raises UsageError if --format is given, too.
    """
    if form is not None and ctx.params.get("format", "text") != "text":
        raise click.UsageError(
            "--format and --output-format name two formats. Leave one of them out."
        )
    return "result" if form == "json" else form


class JsonUsageCommand(click.Command):
    """A command that reports its usage errors as a JSON result, too,
    if the output format is JSON.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options."""
        # click empties the list while it parses.
        arguments = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if form := find_json_format(arguments):
                from codeloop.cli.run.signals import show_result

                show_result(form, error.exit_code, "error", describe_usage_error(error))
            raise


@click.command(cls=JsonUsageCommand)
@click.argument("message", nargs=-1)
@MODEL_OPTION
@VARIANT_OPTION
@AGENT_OPTION
@CONTINUE_OPTION
@SESSION_OPTION
@FORK_OPTION
@WORKTREE_OPTION
@BASE_OPTION
@click.option(
    "--at",
    metavar="MESSAGE",
    help="With --fork: copy only what comes before MESSAGE (an id, or N).",
)
@click.option(
    "--command",
    metavar="NAME",
    shell_complete=make_completion("command"),
    help="Run this command with MESSAGE as arguments.",
)
@click.option("--title", help="Title of the new session.")
# It is eager because the callback of --output-format compares with it.
@click.option(
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    is_eager=True,
    help="Print text or JSON Lines.",
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    callback=read_output_format,
    help="Print lines as the SDK of Claude Code reads them; json: the last one only.",
)
@click.option(
    "--input-format",
    type=click.Choice(["text", "stream-json"]),
    default="text",
    help="Read messages from stdin, one a line, until it ends.",
)
@click.option(
    "--include-partial-messages",
    "partial",
    is_flag=True,
    help="With stream-json: print deltas, too.",
)
@click.option(
    "--replay-user-messages",
    "replay_messages",
    is_flag=True,
    help="With stream-json: print what stdin says.",
)
@click.option(
    "--permission-prompt-tool",
    "permission_tool",
    type=click.Choice(["stdio"]),
    help="With stream-json: ask the program at stdin and stdout for permissions.",
)
@click.option(
    "-f", "--file", "files", type=FILE_TYPE, multiple=True, help="Attach a file; repeatable."
)
@click.option(
    "--schema",
    type=FILE_TYPE,
    help="Print the answer as JSON that matches the JSON Schema in this file.",
)
@click.option(
    "--goal",
    metavar="TEXT",
    help="Work until this is reached: the checks pass, or what the turn ran proves it.",
)
@click.option(
    "--check",
    "checks",
    metavar="COMMAND",
    multiple=True,
    help="With --goal: has to exit with 0; repeatable.",
)
@click.option(
    "--protect",
    metavar="GLOB",
    multiple=True,
    help="With --goal: further files that must not change.",
)
@click.option(
    "--unprotect",
    metavar="GLOB",
    multiple=True,
    help="With --goal: tests or settings that may change.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="With --goal: maximum number of rounds. [default: 10]",
)
@click.option(
    "--max-steps", type=click.IntRange(min=1), help="Maximum number of requests to the model."
)
@click.option(
    "--max-cost", type=click.FloatRange(min=0), metavar="DOLLARS", help="Stop at this cost."
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="Stop at this number of tokens.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after this time.",
)
@AUTO_OPTION
@PROFILE_OPTION
@TRUST_OPTION
@click.option(
    "--background", is_flag=True, help="Work in the background: the terminal is free at once."
)
@click.option("--detached", is_flag=True, hidden=True)
@click.option("--no-wait", is_flag=True, help="Do not wait for background subagents: stop them.")
@click.option("--no-compact", is_flag=True, help="Never summarize a long conversation.")
@THINKING_OPTION
@OFFLINE_OPTION
@DIR_OPTION
@click.option(
    "--attach", metavar="URL", help="Work on a running server; --dir can be a directory there."
)
@USERNAME_OPTION
@PASSWORD_OPTION
@CONFIG_OPTION
@LOG_LEVEL_OPTION
@PRINT_LOGS_OPTION
@click.option("--record", type=FILE_TYPE, help="Record the model's answers to this file.")
@click.option("--force", is_flag=True, help="With --record: replace the file.")
@click.option("--replay", type=FILE_TYPE, help="Answer from a recording instead of a model.")
def run(*, output_format: str | None, **flags: Any) -> None:
    """Run one task in the current directory, or on a running server, and exit.

    MESSAGE is the task. Without it, or with `-` in it, stdin is read.

    Exit codes: 0 done, 1 error, 2 usage, 3 provider, 4 limit, 5 denied,
    6 no output as --schema says,
    7 goal not reached, 124 timeout, 130 interrupted.
    """
    # Help, completion and usage errors need nothing of what a run loads.
    from codeloop.cli.run.start import run_once

    if output_format is not None:
        flags["format"] = output_format
    flags["offline"] = click.get_current_context().meta[OFFLINE_VARIABLE]
    sys.exit(run_once(Options(**flags)))
