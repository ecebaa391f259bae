"""Starts `codeloop run`: checks the options,
and chooses the project or server and the kind of run.
"""

import asyncio

from codeloop.cli.option_values import Options
from codeloop.cli.run.message import read_message
from codeloop.cli.run.one_shot import run_one_shot
from codeloop.cli.run.signals import run_to_result
from codeloop.cli.target.open_target import choose_open_target
from codeloop.schema.errors import UsageProblem

# Options for opening a project, which a server has done already.
LOCAL_OPTIONS = ("trust", "config", "offline", "record", "replay", "force")
# Options that need a server.
ATTACHED_OPTIONS = ("username", "password")
# The formats that the SDK of Claude Code reads.
STREAM_FORMATS = {"stream-json", "result"}


def check_flags(options: Options) -> None:
    """Raise UsageProblem if options contradict each other, or need one that is missing."""
    for name in LOCAL_OPTIONS if options.attach is not None else ATTACHED_OPTIONS:
        if getattr(options, name) and options.attach is not None:
            raise UsageProblem(f"--{name} does not work with --attach. Leave one of them out.")
        if getattr(options, name):
            raise UsageProblem(f"--{name} needs --attach. Add --attach URL, or leave --{name} out.")
    if options.record is not None and options.replay is not None:
        raise UsageProblem(
            "--record and --replay exclude each other, as a replay asks no model. Leave one of them out."
        )
    check_stream_flags(options)
    if options.background and (
        options.attach is not None or options.format != "text" or options.schema is not None
    ):
        raise UsageProblem(
            "--background works with neither --attach, --schema nor another output format: leave it out."
        )
    if options.force and options.record is None:
        raise UsageProblem("--force needs --record. Leave it out.")
    if options.goal is None:
        for name in ("checks", "protect", "unprotect", "rounds"):
            if getattr(options, name):
                raise UsageProblem(
                    f"--{name.removesuffix('s') if name == 'checks' else name} needs --goal TEXT."
                )
    elif not options.goal.strip():
        raise UsageProblem(
            "--goal is empty. Say what is to be reached: --goal 'tests pass' --check 'make test'."
        )
    elif options.schema is not None or options.command is not None:
        raise UsageProblem(
            "--goal does not work with --schema or --command. Leave one of them out."
        )


def check_stream_flags(options: Options) -> None:
    """Raise UsageProblem if options of stream-json contradict each other,
    or need one that is missing.
    """
    if options.format != "stream-json":
        flags = {
            "--input-format stream-json": options.input_format != "text",
            "--include-partial-messages": options.partial,
            "--permission-prompt-tool": options.permission_tool is not None,
        }
        for name, is_given in flags.items():
            if is_given:
                raise UsageProblem(
                    f"{name} needs --output-format stream-json. Add that, or leave it out."
                )
    if options.input_format == "text":
        for name, is_given in {
            "--replay-user-messages": options.replay_messages,
            "--permission-prompt-tool": options.permission_tool is not None,
        }.items():
            if is_given:
                raise UsageProblem(
                    f"{name} needs --input-format stream-json. Add that, or leave it out."
                )
    elif options.message or options.command or options.files or options.goal:
        raise UsageProblem(
            "With --input-format stream-json, the messages come from stdin. "
            "Leave MESSAGE, --command, --file and --goal out."
        )


def run_once(run_options: Options) -> int:
    """Run one turn, or one for each message of stream-json input, and return the exit code.

    A result is shown also when the run fails.
    """

    def check_and_run() -> int:
        check_flags(run_options)
        if run_options.background:
            from codeloop.cli.run.background import run_in_background

            return run_in_background()
        options = run_options
        if run_options.worktree is not None or run_options.base is not None:
            from codeloop.cli.target.worktree import move_to_worktree, separate_prompt

            options = move_to_worktree(separate_prompt(run_options))
        open_target = choose_open_target(options, is_conversation=False)
        if options.format in STREAM_FORMATS:
            from codeloop.cli.run.stream_run import run_stream

            return asyncio.run(run_stream(options, open_target))
        return asyncio.run(run_one_shot(options, read_message(options), open_target))

    return run_to_result(run_options.format, check_and_run)
