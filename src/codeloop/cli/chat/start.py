"""`codeloop` without a command: a conversation in a directory, or one turn when nobody sits at a terminal."""

import asyncio
import re
import shlex
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from codeloop.cli.chat.conversing import converse
from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.run.one_shot import run_once
from codeloop.cli.run.options import Options
from codeloop.cli.target.local import here
from codeloop.kit.suggest import meant, near

COMMAND = re.compile(r"[a-z][a-z-]*")
PATH = re.compile(r"\.{0,2}/|~|\.{1,2}$")


def begin(words: Sequence[str], flags: dict[str, Any], commands: Collection[str], *, is_prompt: bool) -> int:
    """Hold a conversation about what the words say and return the exit code.

    `is_prompt`: the words are the prompt, whatever they look like. Raises CodeloopError when it can't begin.
    """
    directory, prompt = (None, list(words)) if is_prompt else read_words(words, commands)
    if directory is not None and flags.get("directory"):
        raise UsageProblem(f"{directory} and --dir name two directories. Leave one of them out.")
    given: dict[str, Any] = {**flags, "directory": directory or flags.get("directory")}
    options = Options(message=tuple(prompt), **given)
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return run_once(options)
    return asyncio.run(converse(options, here))


def read_words(words: Sequence[str], commands: Collection[str]) -> tuple[Path | None, list[str]]:
    """Return which directory the words name, if any, and which of them are the prompt.

    Raises UsageProblem for what is rather a command that was mistyped, or a directory that does not exist.
    """
    if not words:
        return None, []
    first, rest = words[0], list(words[1:])
    path = Path(first).expanduser()
    is_one = not any(map(str.isspace, first))
    is_path = is_one and PATH.match(first) is not None
    if (is_path or not rest or (is_one and len(rest) == 1 and " " in rest[0])) and path.is_dir():
        return path, rest
    is_command = first.startswith("/") and "/" not in first[1:]  # `/init` is one of the conversation
    if not is_command and (is_path or (is_one and not rest and ("/" in first or path.exists()))):
        kind = "is a file" if path.exists() else "does not exist"
        raise UsageProblem(f"{first} {kind}. Name a directory to work in. As a prompt: codeloop -- {shlex.join(words)}")
    if COMMAND.fullmatch(first) is None:
        return None, list(words)
    as_prompt = f"As a prompt: codeloop -- {shlex.join(words)}"
    if first in commands:
        raise UsageProblem(f"`{first}` is a command: it comes before its options. {as_prompt}")
    close = near(first, commands, most_edits=1) if rest else near(first, commands, parts=True)
    if close or not rest:
        suggestion = meant(f"codeloop {name}" for name in close)
        raise UsageProblem(f"There is no command {first}.{suggestion} `codeloop --help` lists them. {as_prompt}")
    return None, list(words)
