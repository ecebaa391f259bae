"""Starts `codeloop` without a command: a conversation in a directory,
or one turn where there is no terminal.
"""

import asyncio
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from codeloop.cli.chat.conversation import LineConversation
from codeloop.cli.chat.line_terminal import LineTerminal
from codeloop.cli.chat.slash_commands import run_line
from codeloop.cli.option_values import Options
from codeloop.cli.output.streams import OutputQueue, open_standard_streams
from codeloop.cli.questions.trust_prompt import make_trust_prompt
from codeloop.cli.suggestions import COMMAND_WORDS, find_similar_commands
from codeloop.cli.target.open_target import choose_open_target
from codeloop.kit.paths import expand_user_path
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.schema.errors import UsageProblem

# A word that could be the name of a command.
COMMAND_PATTERN = r"[a-z][a-z-]*"
# A word that is surely meant as a path: it begins with `/`, `./`, `../` or `~`, or is `.` or `..`.
PATH_PATTERN = r"\.{0,2}/|~|\.{1,2}$"


def start_conversation(context: click.Context, flags: dict[str, Any], *, is_prompt: bool) -> int:
    """Hold a conversation with the options and words of the command line, and return the exit code.

    `is_prompt`: all words are the prompt; else the first may name a directory.
    Raises CodeloopError if it can't begin.
    """
    words, text = context.args, flags["prompt"]
    if text is not None:
        directory, prompt = find_directory(words), [text]
    else:
        directory, prompt = (None, list(words)) if is_prompt else split_words(words, context)
    if directory is not None and flags.get("directory"):
        raise UsageProblem(f"{directory} and --dir name two directories. Leave one of them out.")
    values: dict[str, Any] = {**flags, "directory": directory or flags.get("directory")}
    del values["prompt"]
    options = Options(message=tuple(prompt), **values)
    if options.worktree is not None or options.base is not None:
        from codeloop.cli.target.worktree import move_to_worktree, separate_prompt

        options = separate_prompt(options)
        # Without a terminal, `run_once` makes the work tree,
        # so that an error has the form of its result.
        options = move_to_worktree(options) if is_interactive() else options
    if not is_interactive():
        from codeloop.cli.run.start import run_once

        return run_once(options)
    if can_show_terminal_ui(options):
        from codeloop.cli.terminal_ui import show_terminal_ui

        return show_terminal_ui(options)
    return asyncio.run(hold_conversation(options))


def split_words(words: Sequence[str], context: click.Context) -> tuple[Path | None, list[str]]:
    """Return the directory that the words name, if any, and the words of the prompt.

    Raises UsageProblem for what is probably a mistyped command, or a directory that does not exist.
    """
    if not words:
        return None, []
    first, others = words[0], list(words[1:])
    path = expand_user_path(first)
    is_single_word = not any(map(str.isspace, first))
    is_path = is_single_word and re.match(PATH_PATTERN, first) is not None
    # `codeloop src "fix it"` names a directory; in `codeloop src is broken`,
    # all three are words of a prompt.
    has_quoted_prompt = is_single_word and len(others) == 1 and " " in others[0]
    if (is_path or not others or has_quoted_prompt) and path.is_dir():
        return path, others
    as_prompt = f"To send it as a prompt: codeloop -- {shlex.join(words)}"
    # `/init` looks like a path, but is a slash command of the conversation.
    is_command = first.startswith("/") and "/" not in first[1:]
    if not is_command and (
        is_path or (is_single_word and not others and ("/" in first or path.exists()))
    ):
        kind = "is a file" if path.exists() else "does not exist"
        raise UsageProblem(f"{first} {kind}. Name a directory to work in. {as_prompt}")
    if re.fullmatch(COMMAND_PATTERN, first) is None:
        return None, list(words)
    commands = (
        context.command.list_commands(context) if isinstance(context.command, click.Group) else []
    )
    if first in commands:
        raise UsageProblem(f"`{first}` is a command: put it before its options. {as_prompt}")
    # Several words are a prompt, unless the first is hardly anything but a mistyped command.
    if others and (first not in COMMAND_WORDS or len(others) > 1):
        close = [f"codeloop {name}" for name in find_similar(first, commands, most_edits=1)]
    else:
        close = find_similar_commands(context, first, parts=True)
    if close or not others:
        raise UsageProblem(
            f"Unknown command: {first}.{format_suggestion(close)} `codeloop --help` lists them. {as_prompt}"
        )
    return None, list(words)


def find_directory(words: Sequence[str]) -> Path | None:
    """Return the directory that the words in addition to `--prompt` name; None: there are no words.

    Raises UsageProblem if they name none.
    """
    if not words:
        return None
    path = expand_user_path(words[0])
    if len(words) > 1 or not path.is_dir():
        raise UsageProblem(
            f"{shlex.join(words)} is not a directory: with --prompt, only a directory may stand beside it."
        )
    return path


async def hold_conversation(options: Options) -> int:
    """Hold a conversation line by line, and return the exit code.
    Raises CodeloopError if it can't begin.
    """
    output_queue = OutputQueue(asyncio.get_running_loop())
    stdout, stderr = open_standard_streams(output_queue)
    is_attended = is_interactive()
    notes = stdout if is_attended else stderr
    terminal = LineTerminal(stdout, notes, is_attended=is_attended, thinking=options.thinking)
    try:
        open_target = choose_open_target(options, is_conversation=True)
        async with open_target(
            options, make_trust_prompt(stdout if is_attended else None)
        ) as target:
            code = await LineConversation(target, options, terminal).run(run_line)
            await output_queue.drain()
            return code
    finally:
        # A reader that has stopped reading must not keep the process from ending.
        output_queue.abandon()


def is_interactive() -> bool:
    """Return whether a user sits at stdin and stdout."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def can_show_terminal_ui(options: Options) -> bool:
    """Return whether the terminal UI can be shown, and the user wants it."""
    return (
        is_interactive()
        and sys.stderr.isatty()
        and not options.plain
        and os.environ.get("TERM", "dumb") != "dumb"
    )
