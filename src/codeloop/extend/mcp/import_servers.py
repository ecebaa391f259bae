"""Converts MCP server entries of other programs' files and of pasted snippets to entries of our configuration."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import Struct

from codeloop.config.files import read_text
from codeloop.config.paths import Paths
from codeloop.kit.jsonc import parse_jsonc
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.limits import CONFIG_DEPTH, MCP_FILE
from codeloop.schema.wire import JSON

_VARIABLE_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^{}]*)?\}")
_INPUT_REFERENCE = re.compile(r"\$\{input:")


class FoundServer(Struct, frozen=True):
    """A server found in another program's file. `entry`: our entry for it; `problem`: why it has none, or ""."""

    name: str
    source: Path
    entry: JSON
    problem: str = ""


def find_foreign_servers(paths: Paths, root: Path, directory: Path) -> tuple[list[FoundServer], list[str]]:
    """Return the servers in the files of other programs, and a line for each file that can't be read."""
    found_servers: list[FoundServer] = []
    problems: list[str] = []
    for file, sections in _list_config_files(paths, root, directory):
        try:
            text = read_text(file, MCP_FILE.value)
            value = _as_object(parse_jsonc(text, depth=CONFIG_DEPTH.value).value if text is not None else None)
        except (CodeloopError, ValueError) as error:
            problems.append(f"{file} is left out: {error}")
            continue
        for section in sections:
            for name, entry in _as_object(section(value)).items():
                found_servers.append(convert_entry(name, file, _as_object(entry)))
    return found_servers, problems


FindServers = Callable[[JSON], Any]


def _list_config_files(paths: Paths, root: Path, directory: Path) -> Iterator[tuple[Path, tuple[FindServers, ...]]]:
    """Yield the configuration files of other programs, each with functions that return its tables of servers."""

    def usual(value: JSON) -> Any:
        return value.get("mcpServers")

    def of_project(value: JSON) -> Any:
        projects = _as_object(value.get("projects"))
        return {
            name: each
            for folder in dict.fromkeys((str(root), str(directory)))
            for name, each in _as_object(_as_object(projects.get(folder)).get("mcpServers")).items()
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


def convert_entry(name: str, source: Path, data: JSON) -> FoundServer:
    """Convert an entry in any program's form to ours. An error becomes the `problem` of the result."""
    entry: JSON
    address = next((data[key] for key in ("url", "serverUrl", "httpUrl") if isinstance(data.get(key), str)), None)
    if address is not None:
        entry = {"type": "remote", "url": address}
        if headers := _as_object(data.get("headers")):
            entry["headers"] = headers
    elif data.get("command") and isinstance(data["command"], str | list):
        arguments = data.get("args")
        words = cast("list[Any]", arguments) if isinstance(arguments, list) else []
        first = [data["command"]] if isinstance(data["command"], str) else cast("list[Any]", data["command"])
        entry = {"type": "local", "command": [*map(str, first), *map(str, words)]}
        if environment := _as_object(data.get("env")) or _as_object(data.get("environment")):
            entry["environment"] = {key: str(value) for key, value in environment.items()}
        if isinstance(data.get("cwd"), str):
            entry["cwd"] = data["cwd"]
    else:
        return FoundServer(name, source, {}, "it has neither a command nor a url")
    entry |= {key: data[key] for key in ("enabled", "timeout", "tools", "oauth", "protocol") if key in data}
    if data.get("disabled") is True:
        entry["enabled"] = False
    # VS Code asks the user for such values when the server starts; there is no such question here.
    if _INPUT_REFERENCE.search(str(entry)):
        return FoundServer(name, source, {}, "it asks for a value (`${input:...}`): add it by hand")
    return FoundServer(name, source, _convert_references(entry))


def _convert_references(value: Any) -> Any:
    """Return a value with references to variables as ours: `${NAME:-text}` becomes `{env:NAME:-text}`."""
    if isinstance(value, str):
        return _VARIABLE_REFERENCE.sub(r"{env:\1\2}", value.replace("${workspaceFolder}", "."))
    if isinstance(value, list):
        return [_convert_references(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _convert_references(each) for key, each in cast("JSON", value).items()}
    return value


def _as_object(value: Any) -> JSON:
    return cast("JSON", value) if isinstance(value, dict) else {}


_SNIPPET_SOURCE = Path("-")
_SECTION_KEYS = ("mcpServers", "servers", "mcp", "mcp_servers", "context_servers")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
# Forms in which READMEs write a secret to be filled in: `<token>`, `your-api-key`, `token_here`, `xxx`, `...`.
_PLACEHOLDER = re.compile(r"<[^<>]+>|\[?your[-_ ].*|.*[-_]here|x{3,}|\.{3}", re.IGNORECASE)
# A name like these is the first word of a command whose server was given no name.
_PROGRAM_NAMES = frozenset(
    ("npx", "uvx", "docker", "node", "python", "python3", "bunx", "deno", "uv", "pipx", "podman")
)


def looks_like_json(text: str) -> bool:
    """Return whether a text looks like JSON, with or without the outer braces."""
    return text.lstrip().startswith("{") or re.match(r'\s*"[^"]+"\s*:\s*\{', text) is not None


def parse_snippet(text: str, name: str = "") -> list[FoundServer]:
    """Return the servers of a snippet: a whole file, its table of servers, or one entry, to be named `name`.

    Raises UsageProblem.
    """
    # Snippets are often copied from the middle of a file: without the outer braces, or with a comma at the end.
    text = text.strip().rstrip(",")
    text = text if text.startswith("{") else f"{{{text}}}"
    try:
        value: Any = parse_jsonc(text, depth=CONFIG_DEPTH.value).value
    except ValueError as error:
        raise UsageProblem(f"That is not JSON: {error}. Paste the whole snippet, between single quotes.") from error
    found_servers = [convert_entry(each, _SNIPPET_SOURCE, entry) for each, entry in _list_entries(value, name)]
    if name and len(found_servers) > 1:
        found_servers = [each for each in found_servers if each.name == name]
    if not found_servers:
        raise UsageProblem('There is no server in it. It looks like {"mcpServers": {"NAME": {"command": ..., ...}}}.')
    return found_servers


def _list_entries(value: JSON, name: str) -> Iterator[tuple[str, JSON]]:
    """Yield the entries inside any surrounding tables."""
    if isinstance(value.get("command"), str | list) or isinstance(value.get("url"), str):
        if not name:
            raise UsageProblem("That entry has no name. Say one first: codeloop mcp add NAME '{...}'")
        yield name, value
        return
    tables = {key: cast("JSON", inner) for key, inner in value.items() if isinstance(inner, dict)}
    for key, inner in tables.items():
        if key in _SECTION_KEYS:
            yield from _list_entries(inner, name)
        else:
            yield (name if name and len(tables) == 1 else key), inner


def split_command_line(name: str, what: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Split a command line into its words and the variables before it. Raises UsageProblem."""
    words = [*what]
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
    while words and (match := _ASSIGNMENT.fullmatch(words[0])):
        variables[match[1]] = match[2]
        words = words[1:]
    if not words:
        raise UsageProblem("There are variables, and no command behind them.")
    if len(words) == 1 and "://" in words[0]:
        raise UsageProblem(f"{words[0]} is no address of a server: that begins with https:// or http://.")
    if len(words) == 1 and re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?(/\S*)?", words[0]) and not Path(words[0]).exists():
        raise UsageProblem(f"{words[0]} is no program here. An address begins so: https://{words[0]}")
    return words, variables


def _suggest_name(name: str, words: Sequence[str]) -> str:
    """Suggest a name for a server, from its address or its package."""
    if "://" in name:
        labels = [each for each in (urlsplit(name).hostname or "").split(".") if each not in {"www", "mcp", "api"}]
        return labels[0] if labels else "NAME"
    package = next((each for each in words if not each.startswith("-") and each != "run"), "")
    base = re.sub(r"@[^/]*$", "", package.rpartition("/")[2])
    return re.sub(r"^(mcp-)?(server-)?|-mcp$|(-server)?$", "", base) or "NAME"


def resolve_paths(entry: JSON, directory: Path) -> JSON:
    """Make a command's paths to files of a directory absolute, since it may run elsewhere."""
    words = entry.get("command")
    if not isinstance(words, list):
        return entry
    return {
        **entry,
        "command": [_resolve_word(word, at, directory) for at, word in enumerate(cast("list[str]", words))],
    }


def _resolve_word(word: str, at: int, directory: Path) -> str:
    # A first word without a slash is the name of a program, which is found on the PATH.
    is_name = at == 0 and "/" not in word
    return str(directory / word) if not is_name and (directory / word).is_file() else word


def reject_placeholders(name: str, entry: JSON) -> None:
    """Raise UsageProblem where a value is still a README's placeholder for a secret."""
    for kind, mark in (("environment", "="), ("headers", ": ")):
        values: dict[str, str] = entry.get(kind, {})
        for key, value in values.items():
            token = str(value).removeprefix("Bearer ").strip()
            if _PLACEHOLDER.fullmatch(token):
                reference = re.sub(r"[^A-Za-z0-9]+", "_", token).strip("_").upper() if kind == "headers" else key
                raise UsageProblem(
                    f"{key} of {name} still has a placeholder: {key}{mark}{value}. Put the value in, or "
                    f"{{env:{reference or 'TOKEN'}}} to take it from your environment."
                )
