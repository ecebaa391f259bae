"""Finds the MCP servers in the configuration files of other programs, such as Claude Code,
Cursor and VS Code.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from codeloop.config.files import read_text
from codeloop.config.forms.server_entries import FoundServer, convert_entry
from codeloop.config.forms.server_keys import as_object
from codeloop.config.paths import Paths
from codeloop.kit.jsonc import parse_jsonc
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_DEPTH, MCP_FILE
from codeloop.schema.wire import JSON

ReadTable = Callable[[JSON], Any]
"""Returns the table of servers, by name, in the content of a configuration file;
any other value: it has none.
"""


def find_foreign_servers(
    paths: Paths, root: Path, directory: Path
) -> tuple[list[FoundServer], list[str]]:
    """Return the servers in the files of other programs,
    and a line for each file that can't be read.

    `root`, `directory`: the top of the project, and the directory in it that codeloop works in.
    """
    found_servers: list[FoundServer] = []
    problems: list[str] = []
    for file, tables in _list_config_files(paths, root, directory):
        try:
            text = read_text(file, MCP_FILE.value)
            value = as_object(
                parse_jsonc(text, depth=CONFIG_DEPTH.value).value if text is not None else None
            )
        except (CodeloopError, ValueError) as error:
            problems.append(f"{file} is left out: {error}")
            continue
        for read_table in tables:
            for name, entry in as_object(read_table(value)).items():
                found_servers.append(convert_entry(name, file, as_object(entry)))
    return found_servers, problems


def _list_config_files(
    paths: Paths, root: Path, directory: Path
) -> Iterator[tuple[Path, tuple[ReadTable, ...]]]:
    """Yield the configuration files of other programs,
    each with the functions that read its tables of servers.
    """

    def read_project_tables(content: JSON) -> Any:
        # Claude Code's own file has a table for each project: {"projects": {"/home/me/shop":
        # {"mcpServers": {...}}}}
        projects = as_object(content.get("projects"))
        return {
            name: entry
            for folder in dict.fromkeys((str(root), str(directory)))
            for name, entry in as_object(as_object(projects.get(folder)).get("mcpServers")).items()
        }

    usual = (_read_usual_table,)
    yield root / ".mcp.json", usual
    yield paths.home / ".claude.json", (_read_usual_table, read_project_tables)
    yield paths.home / ".config" / "Claude" / "claude_desktop_config.json", usual
    yield (
        paths.home / "Library" / "Application Support" / "Claude" / "claude_desktop_config.json",
        usual,
    )
    yield root / ".cursor" / "mcp.json", usual
    yield paths.home / ".cursor" / "mcp.json", usual
    yield root / ".vscode" / "mcp.json", (_read_vscode_table,)
    yield paths.home / ".config" / "Code" / "User" / "mcp.json", (_read_vscode_table,)
    yield (
        paths.home / "Library" / "Application Support" / "Code" / "User" / "mcp.json",
        (_read_vscode_table,),
    )


def _read_usual_table(content: JSON) -> Any:
    return content.get("mcpServers")


def _read_vscode_table(content: JSON) -> Any:
    return content.get("servers")
