"""Servers that other programs are configured with, as entries of ours. Only reads; nothing of it is run."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from codeloop.config.files import read_text
from codeloop.config.paths import Paths
from codeloop.kit.jsonc import parse
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_DEPTH, MCP_FILE
from codeloop.schema.wire import JSON

_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^{}]*)?\}")
_INPUT = re.compile(r"\$\{input:")


class FoundServer(Struct, frozen=True):
    """A server of another program. `entry`: ours for it; `problem`: why there is none ("": there is)."""

    name: str
    source: Path
    entry: JSON
    problem: str = ""


def servers_of_others(paths: Paths, root: Path, directory: Path) -> tuple[list[FoundServer], list[str]]:
    """Return the servers in the files of other programs, and a line for each file that can't be read."""
    found: list[FoundServer] = []
    problems: list[str] = []
    for file, sections in _places(paths, root, directory):
        try:
            text = read_text(file, MCP_FILE.value)
            value = _object(parse(text, depth=CONFIG_DEPTH.value).value if text is not None else None)
        except (CodeloopError, ValueError) as error:
            problems.append(f"{file} is left out: {error}")
            continue
        for section in sections:
            for name, entry in _object(section(value)).items():
                found.append(found_server(name, file, _object(entry)))
    return found, problems


Section = Callable[[JSON], Any]


def _places(paths: Paths, root: Path, directory: Path) -> Iterator[tuple[Path, tuple[Section, ...]]]:
    """Yield the files of other programs and where in each the servers are."""

    def usual(value: JSON) -> Any:
        return value.get("mcpServers")

    def of_project(value: JSON) -> Any:
        projects = _object(value.get("projects"))
        return {
            name: each
            for folder in dict.fromkeys((str(root), str(directory)))
            for name, each in _object(_object(projects.get(folder)).get("mcpServers")).items()
        }

    def of_editor(value: JSON) -> Any:
        return value.get("servers")

    yield root / ".mcp.json", (usual,)
    yield paths.home / ".claude.json", (usual, of_project)
    yield paths.home / ".config" / "Claude" / "claude_desktop_config.json", (usual,)
    yield paths.home / "Library" / "Application Support" / "Claude" / "claude_desktop_config.json", (usual,)
    yield root / ".cursor" / "mcp.json", (usual,)
    yield paths.home / ".cursor" / "mcp.json", (usual,)
    yield root / ".vscode" / "mcp.json", (of_editor,)
    yield paths.home / ".config" / "Code" / "User" / "mcp.json", (of_editor,)
    yield paths.home / "Library" / "Application Support" / "Code" / "User" / "mcp.json", (of_editor,)


def found_server(name: str, source: Path, given: JSON) -> FoundServer:
    """Return an entry of another program, or of ours, as one of ours."""
    entry: JSON
    address = next((given[key] for key in ("url", "serverUrl", "httpUrl") if isinstance(given.get(key), str)), None)
    if address is not None:
        entry = {"type": "remote", "url": address}
        if headers := _object(given.get("headers")):
            entry["headers"] = headers
    elif given.get("command") and isinstance(given["command"], str | list):
        arguments = given.get("args")
        words = cast("list[Any]", arguments) if isinstance(arguments, list) else []
        first = [given["command"]] if isinstance(given["command"], str) else cast("list[Any]", given["command"])
        entry = {"type": "local", "command": [*map(str, first), *map(str, words)]}
        if environment := _object(given.get("env")) or _object(given.get("environment")):
            entry["environment"] = {key: str(value) for key, value in environment.items()}
        if isinstance(given.get("cwd"), str):
            entry["cwd"] = given["cwd"]
    else:
        return FoundServer(name, source, {}, "it has neither a command nor a url")
    entry |= {key: given[key] for key in ("enabled", "timeout", "tools", "oauth", "protocol") if key in given}
    if given.get("disabled") is True:
        entry["enabled"] = False
    if _INPUT.search(str(entry)):
        return FoundServer(name, source, {}, "it asks for a value (`${input:...}`): add it by hand")
    return FoundServer(name, source, _referring(entry))


def _referring(value: Any) -> Any:
    """Return a value with references to variables as ours: `${NAME:-text}` becomes `{env:NAME:-text}`."""
    if isinstance(value, str):
        return _REFERENCE.sub(r"{env:\1\2}", value.replace("${workspaceFolder}", "."))
    if isinstance(value, list):
        return [_referring(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _referring(each) for key, each in cast("JSON", value).items()}
    return value


def _object(value: Any) -> JSON:
    return cast("JSON", value) if isinstance(value, dict) else {}
