"""Sets or removes one entry of a configuration file, such as an MCP server;
the rest of the file stays unchanged.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from codeloop.config.config_text import NotEditable, set_value
from codeloop.config.files import describe_os_error, read_text, write_private
from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.config.references import map_references, read_variable
from codeloop.config.sources import CODELOOP_FILES
from codeloop.kit.jsonc import JsoncError, KeyPath, parse_jsonc
from codeloop.kit.paths import expand_user_path
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.wire import JSON

_SERVER_PLACES = (("mcp",), ("mcp", "servers"), ("mcp", "mcpServers"), ("mcpServers",))
"""The keys under which a file may have its MCP servers."""


def choose_entry_file(paths: Paths, project_root: ProjectRoot | None) -> Path:
    """Return the file to write entries to: that of the project,
    or without a project the user's own.

    If codeloop.json and codeloop.jsonc both exist, it is the latter, which takes precedence.
    """
    folder = paths.config if project_root is None else project_root.root
    present = [folder / name for name in CODELOOP_FILES if os.path.lexists(folder / name)]
    return present[-1] if present else folder / CODELOOP_FILES[0]


def resolve_entry(value: Any, folder: Path, environment: Mapping[str, str]) -> Any:
    """Return an entry with its `{env:}` and `{file:}` references replaced,
    as if it were read from a file in `folder`.

    Raises CodeloopError for a variable that is not set and a file that can't be read.
    """

    def read_reference(kind: str, name: str, _keys: KeyPath) -> str:
        if kind == "env":
            if name not in environment and ":-" not in name:
                raise CodeloopError(
                    f"The variable {name} is not set, which the entry takes a value from."
                )
            return read_variable(name, environment)
        file = folder / expand_user_path(name)
        text = read_text(file, CONFIG_BYTES.value)
        if text is None:
            raise CodeloopError(f"There is no file {file}, which the entry takes a value from.")
        return text.strip()

    return map_references(value, read_reference)


def write_entry(file: Path, section: str, name: str, entry: JSON | None) -> None:
    """Set the entry `<section>.<name>` of a file; None removes it. Raises as `edit_file` does."""
    write_value(file, (section, name), entry)


def write_entries(file: Path, section: str, entries: Mapping[str, JSON]) -> None:
    """Set entries of a section of a file by name, all or none. Raises as `edit_file` does."""

    def set_entries(text: str | None) -> str:
        new_text = text or ""
        for name, entry in entries.items():
            new_text = set_value(new_text, (section, name), entry)
        return new_text

    edit_file(file, section, set_entries)


def remove_server(file: Path, name: str) -> None:
    """Remove an MCP server from a file, wherever its entry stands there.
    Raises as `edit_file` does.
    """

    def remove(text: str | None) -> str:
        new_text = text or ""
        for place in _SERVER_PLACES:
            new_text = set_value(new_text, (*place, name), None)
        return new_text

    edit_file(file, "mcp", remove)


def find_server_place(text: str, name: str) -> tuple[str, ...]:
    """Return the keys that lead to the entry of an MCP server in a file's text; where it has none,
    to where one is written.
    """
    value = parse_jsonc(text, depth=CONFIG_DEPTH.value).value
    for place in _SERVER_PLACES:
        if isinstance(_find_value(value, (*place, name)), dict):
            return (*place, name)
    return ("mcp", name)


def read_value(file: Path, path: Sequence[str]) -> Any:
    """Return the value at a path of keys in a file, as it is written there; None: it has none."""
    text = read_text(file, CONFIG_BYTES.value) or "{}"
    return _find_value(parse_jsonc(text, depth=CONFIG_DEPTH.value).value, path)


def _find_value(value: object, path: Sequence[str]) -> Any:
    for key in path:
        value = cast("JSON", value).get(key) if isinstance(value, dict) else None
    return value


def write_value(file: Path, path: Sequence[str], value: Any) -> None:
    """Set the value at a path of keys in a file; None removes it. Raises as `edit_file` does."""
    edit_file(file, path[0], lambda text: set_value(text or "", path, value))


def edit_file(file: Path, section: str, edit: Callable[[str | None], str]) -> bool:
    """Write what `edit` makes of a file's text (None: there is no file);
    return whether that is another text.

    `section`: the key that is edited. Raises CodeloopError if the file can't be read, edited or
    written; it is then unchanged.
    """
    try:
        before = read_text(file, CONFIG_BYTES.value)
        text = edit(before)
        if text == before:
            return False
        # `write_private` makes a file that only its owner may read; an existing one keeps its mode.
        mode = file.stat().st_mode & 0o777 if file.parent.is_dir() and file.exists() else None
        write_private(file, text)
        if mode is not None:
            file.chmod(mode)
    except (JsoncError, NotEditable) as error:
        raise CodeloopError(
            f"{file} is not changed: {error}. Edit `{section}` in it by hand."
        ) from error
    except OSError as error:
        # Other files may have been changed before, so nothing is said of those.
        raise CodeloopError(
            f"{file} can't be written: {describe_os_error(error)}. It was not changed."
        ) from error
    except ValueError as error:
        raise CodeloopError(f"The entry can't be stored in {file}: {error}.") from error
    return True
