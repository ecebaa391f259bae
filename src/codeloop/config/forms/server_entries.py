"""Converts entries of MCP servers in the forms of other programs to entries
of our configuration.
"""

import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from codeloop.config.forms.server_keys import (
    as_object,
    convert_headers,
    convert_keys,
    convert_passed_variables,
)
from codeloop.schema.wire import JSON

_VARIABLE_REFERENCE = r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^{}]*)?\}"
_INPUT_REFERENCE = r"\$\{input:"


_KINDS = frozenset(("stdio", "sse", "http", "streamable-http", "streamableHttp"))
_OWN_KINDS = frozenset(("local", "remote"))
_FOREIGN_SECTION = "mcpServers"
_FOREIGN_KEYS = frozenset(("args", "env", "serverUrl", "httpUrl"))
# Keys of an entry that are converted; what else an entry of `mcp` has stays as it is.
_CONVERTED_KEYS = frozenset(
    (*_FOREIGN_KEYS, "type", "command", "url", "environment", "headers", "disabled")
)


_OTHER_NAMES = {"cmd": "command", "envs": "env", "uri": "url"}
"""Keys of programs whose forms are the usual ones otherwise."""


class FoundServer(Struct, frozen=True):
    """A server in the form of another program. `source`: its file. `entry`: our entry for it.

    `problem`: why there is no entry, "" if there is one. `notes`, `allowed`: as in EntryKeys.
    """

    name: str
    source: Path
    entry: JSON
    problem: str = ""
    notes: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


def convert_entry(name: str, source: Path, data: JSON) -> FoundServer:
    """Convert an entry in any program's form to ours.
    An error becomes the `problem` of the result.
    """
    data = {_OTHER_NAMES.get(key, key): value for key, value in data.items()}
    entry = _convert_remote(data) or _convert_local(data)
    if entry is None:
        return FoundServer(name, source, entry={}, problem="it has neither a command nor a url")
    keys = convert_keys(data, is_ours=data.get("type") in _OWN_KINDS)
    entry |= keys.entry
    # VS Code asks the user for such values when the server starts; there is no such question here.
    if re.search(_INPUT_REFERENCE, str(entry)):
        return FoundServer(
            name, source, entry={}, problem="it asks for a value (`${input:...}`): add it by hand"
        )
    return FoundServer(
        name, source, _convert_references(entry), notes=keys.notes, allowed=keys.allowed
    )


class ReadServers(NamedTuple):
    """The object of a file with all its servers as entries of `mcp`.

    `names`: those that had another form. `problems`: a phrase for each that could not be converted.
    """

    raw: JSON
    names: list[str]
    problems: list[str]


def read_servers(raw: JSON) -> ReadServers:
    """Read the servers of a configuration file that are under `mcpServers`, at the top or in `mcp`,
    or in `mcp` in another program's form.
    """
    own = dict(as_object(raw.get("mcp")))
    problems = list[str]()
    foreign: JSON = {}
    for value in (own.pop(_FOREIGN_SECTION, None), raw.get(_FOREIGN_SECTION)):
        foreign |= name_entries(value)
        if value and not name_entries(value):
            problems.append(f"{_FOREIGN_SECTION}: expected an object of servers by their names")
    servers, names = dict(own), list[str]()
    foreign = {name: entry for name, entry in foreign.items() if name not in own}
    described = {name: entry for name, entry in own.items() if _is_described(entry)}
    for name, entry in {**foreign, **described}.items():
        if _only_switches_off(as_object(entry)):
            servers[name] = {"enabled": False}
            continue
        found = convert_entry(name, Path(), as_object(entry))
        if found.problem:
            problems.append(f"{name}: {found.problem}")
            continue
        others = {
            key: each
            for key, each in as_object(entry).items()
            if name in own and key not in _CONVERTED_KEYS
        }
        servers[name] = {**others, **found.entry}
        names.append(name)
    rest = {key: value for key, value in raw.items() if key != _FOREIGN_SECTION}
    # What else `mcp` holds, such as a list, stays: it is reported as a value of the wrong type.
    has_servers = servers or isinstance(raw.get("mcp"), dict)
    return ReadServers({**rest, "mcp": servers} if has_servers else rest, names, problems)


def name_entries(value: Any) -> JSON:
    """Return the servers of an object, or of a list of objects with a `name`, by their names."""
    if not isinstance(value, list):
        return as_object(value)
    entries = [as_object(each) for each in cast("list[Any]", value)]
    return {each["name"]: each for each in entries if isinstance(each.get("name"), str)}


def _only_switches_off(entry: JSON) -> bool:
    """Return whether an entry switches off a server that another file defines."""
    is_off = entry.get("disabled") is True or entry.get("enabled") is False
    return is_off and entry.keys() <= {"disabled", "enabled"}


def _is_described(entry: Any) -> bool:
    """Return whether an entry of `mcp` is in the form that other programs have."""
    values = as_object(entry)
    is_text = isinstance(values.get("command"), str) or isinstance(values.get("environment"), list)
    return is_text or values.get("type") in _KINDS or not _FOREIGN_KEYS.isdisjoint(values)


def _convert_remote(data: JSON) -> JSON | None:
    """Return our entry for a server at a URL; None: the entry has no URL."""
    address = next(
        (data[key] for key in ("url", "serverUrl", "httpUrl") if isinstance(data.get(key), str)),
        None,
    )
    if address is None:
        return None
    entry: JSON = {"type": "remote", "url": address}
    if headers := _make_texts({**as_object(data.get("headers")), **convert_headers(data)}):
        entry["headers"] = headers
    return entry


def _convert_local(data: JSON) -> JSON | None:
    """Return our entry for a server that is a program; None: the entry has no command."""
    # Zed has the words of a command in an object of its own.
    if isinstance(inner := data.get("command"), dict):
        data = {**data, **as_object(inner), "command": as_object(inner).get("path")}
    command, arguments = data.get("command"), data.get("args")
    if not command or not isinstance(command, str | list):
        return None
    # Most programs have the program and its arguments in two keys;
    # here `command` is a list of all words.
    has_arguments = "args" in data
    words = (
        _split_command(command, has_arguments=has_arguments)
        if isinstance(command, str)
        else cast("list[Any]", command)
    )
    more_words = cast("list[Any]", arguments) if isinstance(arguments, list) else []
    entry: JSON = {"type": "local", "command": [*map(str, words), *map(str, more_words)]}
    variables = _read_variables(data.get("env")) or _read_variables(data.get("environment"))
    if environment := _make_texts({**convert_passed_variables(data), **variables}):
        entry["environment"] = environment
    if isinstance(data.get("cwd"), str):
        entry["cwd"] = data["cwd"]
    return entry


def _split_command(command: str, *, has_arguments: bool) -> list[str]:
    """Return the words of a command that is one text: its program alone,
    or a whole line where it has no `args`.
    """
    # A path may have blanks.
    if has_arguments or Path(command).is_file():
        return [command]
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _read_variables(value: Any) -> JSON:
    """Return variables by name, from an object or a list such as `["KEY=text"]`."""
    if not isinstance(value, list):
        return as_object(value)
    pairs = (str(each).partition("=") for each in cast("list[Any]", value))
    return {name: text for name, sign, text in pairs if sign}


def _make_texts(values: JSON) -> JSON:
    """Return variables or headers with texts as values: `true` and 1 become "true" and "1";
    null sets nothing.
    """
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
        if value is not None
    }


def _convert_references(value: Any) -> Any:
    """Return a value with references to variables as ours: `${NAME:-text}`
    becomes `{env:NAME:-text}`.
    """
    if isinstance(value, str):
        return re.sub(_VARIABLE_REFERENCE, r"{env:\1\2}", value.replace("${workspaceFolder}", "."))
    if isinstance(value, list):
        return [_convert_references(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _convert_references(each) for key, each in cast("JSON", value).items()}
    return value
