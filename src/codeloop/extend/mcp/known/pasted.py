"""What a person pastes to add a server: a command line, an address, or the JSON of a README. Pure."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from codeloop.extend.mcp.known.importing import FoundServer, found_server
from codeloop.kit.jsonc import parse
from codeloop.schema.errors import UsageProblem
from codeloop.schema.limits import CONFIG_DEPTH
from codeloop.schema.wire import JSON

_SOURCE = Path("-")
_SECTIONS = ("mcpServers", "servers", "mcp", "mcp_servers", "context_servers")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PLACEHOLDER = re.compile(r"<[^<>]+>|\[?your[-_ ].*|.*[-_]here|x{3,}|\.{3}", re.IGNORECASE)
_STARTERS = frozenset(("npx", "uvx", "docker", "node", "python", "python3", "bunx", "deno", "uv", "pipx", "podman"))


def is_json(text: str) -> bool:
    """Return whether a text is meant to be JSON."""
    return text.lstrip().startswith("{") or re.match(r'\s*"[^"]+"\s*:\s*\{', text) is not None


def servers_of_json(text: str, name: str = "") -> list[FoundServer]:
    """Return the servers of a snippet: a whole file, its table of servers, or one entry, which `name` is for.

    Raises UsageProblem.
    """
    text = text.strip().rstrip(",")
    text = text if text.startswith("{") else f"{{{text}}}"
    try:
        value: Any = parse(text, depth=CONFIG_DEPTH.value).value
    except ValueError as error:
        raise UsageProblem(f"That is not JSON: {error}. Paste the whole snippet, between single quotes.") from error
    found = [found_server(each, _SOURCE, entry) for each, entry in _entries(value, name)]
    if name and len(found) > 1:
        found = [each for each in found if each.name == name]
    if not found:
        raise UsageProblem('There is no server in it. It looks like {"mcpServers": {"NAME": {"command": ..., ...}}}.')
    return found


def _entries(value: JSON, name: str) -> Iterator[tuple[str, JSON]]:
    """Yield the entries below whatever tables are around them."""
    if isinstance(value.get("command"), str | list) or isinstance(value.get("url"), str):
        if not name:
            raise UsageProblem("That entry has no name. Say one first: codeloop mcp add NAME '{...}'")
        yield name, value
        return
    tables = {key: cast("JSON", inner) for key, inner in value.items() if isinstance(inner, dict)}
    for key, inner in tables.items():
        if key in _SECTIONS:
            yield from _entries(inner, name)
        else:
            yield (name if name and len(tables) == 1 else key), inner


def words_of(name: str, what: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words of a command line and the variables that stand before it. Raises UsageProblem."""
    words = [*what]
    if not words or name in _STARTERS or "://" in name:
        line = shlex.join([name, *words])
        raise UsageProblem(f"A server has a name, which comes first: codeloop mcp add {_named(name, words)} {line}")
    if len(words) == 1 and " " in words[0].strip() and not Path(words[0]).exists():
        try:
            words = shlex.split(words[0])
        except ValueError as error:
            raise UsageProblem(f"The command line can't be read: {error}.") from error
    variables: dict[str, str] = {}
    if words[0] == "env":
        words = words[1:]
    while words and (found := _VARIABLE.fullmatch(words[0])):
        variables[found[1]] = found[2]
        words = words[1:]
    if not words:
        raise UsageProblem("There are variables, and no command behind them.")
    if len(words) == 1 and "://" in words[0]:
        raise UsageProblem(f"{words[0]} is no address of a server: that begins with https:// or http://.")
    if len(words) == 1 and re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?(/\S*)?", words[0]) and not Path(words[0]).exists():
        raise UsageProblem(f"{words[0]} is no program here. An address begins so: https://{words[0]}")
    return words, variables


def _named(name: str, words: Sequence[str]) -> str:
    """Return a name for a server that was given none."""
    if "://" in name:
        labels = [each for each in (urlsplit(name).hostname or "").split(".") if each not in {"www", "mcp", "api"}]
        return labels[0] if labels else "NAME"
    package = next((each for each in words if not each.startswith("-") and each != "run"), "")
    bare = re.sub(r"@[^/]*$", "", package.rpartition("/")[2])
    return re.sub(r"^(mcp-)?(server-)?|-mcp$|(-server)?$", "", bare) or "NAME"


def with_whole_paths(entry: JSON, directory: Path) -> JSON:
    """Return an entry whose command names the files of a directory by their whole paths, since it may run elsewhere."""
    words = entry.get("command")
    if not isinstance(words, list):
        return entry
    return {**entry, "command": [_whole(word, at, directory) for at, word in enumerate(cast("list[str]", words))]}


def _whole(word: str, at: int, directory: Path) -> str:
    is_name = at == 0 and "/" not in word  # found on the PATH
    return str(directory / word) if not is_name and (directory / word).is_file() else word


def check_values(name: str, entry: JSON) -> None:
    """Raise UsageProblem where a value is still what a README has in the place of a secret."""
    for kind, mark in (("environment", "="), ("headers", ": ")):
        values: dict[str, str] = entry.get(kind, {})
        for key, value in values.items():
            bare = str(value).removeprefix("Bearer ").strip()
            if _PLACEHOLDER.fullmatch(bare):
                reference = re.sub(r"[^A-Za-z0-9]+", "_", bare).strip("_").upper() if kind == "headers" else key
                raise UsageProblem(
                    f"{key} of {name} still has a placeholder: {key}{mark}{value}. Put the value in, or "
                    f"{{env:{reference or 'TOKEN'}}} to take it from your environment."
                )
