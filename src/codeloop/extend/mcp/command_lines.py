"""The command line of an MCP server that the user adds: split into words and variables,
with absolute paths.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON

_ASSIGNMENT = r"(?s)([A-Za-z_][A-Za-z0-9_]*)=(.*)"
# A name like these is the first word of a command whose server was given no name.
_PROGRAM_NAMES = frozenset(
    ("npx", "uvx", "docker", "node", "python", "python3", "bunx", "deno", "uv", "pipx", "podman")
)


def split_command_line(name: str, arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Split the command line of a server into its words and the variables before it.
    Raises UsageProblem.

    `name`: the server's; `arguments`: of `codeloop mcp add`, after the name.
    """
    words = [*arguments]
    if not words or name in _PROGRAM_NAMES or "://" in name:
        line = shlex.join([name, *words])
        raise UsageProblem(
            f"A server has a name, which comes first: codeloop mcp add {_suggest_name(name, words)} {line}"
        )
    # One quoted argument is a whole command line, unless a file of that name exists.
    if len(words) == 1 and " " in words[0].strip() and not Path(words[0]).exists():
        try:
            words = shlex.split(words[0])
        except ValueError as error:
            raise UsageProblem(f"The command line can't be read: {error}.") from error
    variables: dict[str, str] = {}
    if words[0] == "env":
        words = words[1:]
    while words and (match := re.fullmatch(_ASSIGNMENT, words[0])):
        variables[match[1]] = match[2]
        words = words[1:]
    if not words:
        raise UsageProblem("There are variables, and no command behind them.")
    if len(words) == 1 and "://" in words[0]:
        raise UsageProblem(
            f"{words[0]} is not an address of a server: that begins with https:// or http://."
        )
    if (
        len(words) == 1
        and re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?(/\S*)?", words[0])
        and not Path(words[0]).exists()
    ):
        raise UsageProblem(
            f"{words[0]} is not a program here. An address begins so: https://{words[0]}"
        )
    return words, variables


def _suggest_name(name: str, words: Sequence[str]) -> str:
    """Suggest a name for a server, from its address or its package."""
    if "://" in name:
        labels = [
            each
            for each in (urlsplit(name).hostname or "").split(".")
            if each not in {"www", "mcp", "api"}
        ]
        return labels[0] if labels else "NAME"
    package = next((each for each in words if not each.startswith("-") and each != "run"), "")
    # `@modelcontextprotocol/server-memory@1.2` is suggested as `memory`.
    base = re.sub(r"@[^/]*$", "", package.rpartition("/")[2])
    return re.sub(r"^(mcp-)?(server-)?|-mcp$|(-server)?$", "", base) or "NAME"


def resolve_paths(entry: JSON, directory: Path) -> JSON:
    """Make a command's paths to files of a directory absolute, since it may run elsewhere."""
    words = entry.get("command")
    if not isinstance(words, list):
        return entry
    command = [
        # A first word without a slash is the name of a program, which is found on the PATH.
        word if index == 0 and "/" not in word else _resolve_word(word, directory)
        for index, word in enumerate(cast("list[str]", words))
    ]
    return {**entry, "command": command}


def _resolve_word(word: str, directory: Path) -> str:
    return str(directory / word) if (directory / word).is_file() else word
