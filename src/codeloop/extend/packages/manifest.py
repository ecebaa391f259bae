"""Reads a package's manifest, `plugin.json`, with its name and MCP servers;
the rest is found in its folders.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.extend.packages.marketplace import find_listing
from codeloop.kit.jsonc import JsoncError, parse_jsonc
from codeloop.kit.small_files import read_start
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import PAGE_BYTES
from codeloop.schema.wire import JSON

MANIFEST = "plugin.json"
CLAUDE_MANIFEST = ".claude-plugin/plugin.json"
# Plugins of Claude Code may do without a manifest: these make one...
_CLAUDE_PARTS = ("skills", "commands", "agents", "hooks/hooks.json", ".mcp.json")
# ... unless the folder is a package of a program.
_PROGRAM_FILES = ("package.json", "__init__.py", "plugin.py", "extension.py", "pyproject.toml")


class Manifest(Struct, frozen=True):
    """A package. `mcp`: servers, as in a configuration file.
    `policy`: its plugins' hooks are required.
    """

    name: str
    version: str = ""
    description: str = ""
    mcp: dict[str, JSON] = {}
    policy: bool = False


class _ClaudeManifest(Struct, frozen=True):
    """The used fields of a Claude Code plugin's manifest."""

    name: str
    version: str = ""
    description: str = ""


def is_claude_plugin(folder: Path) -> bool:
    """Return whether a folder is a plugin of Claude Code, and no package of ours."""
    if (folder / CLAUDE_MANIFEST).is_file():
        return not (folder / MANIFEST).exists()
    if any((folder / name).exists() for name in (MANIFEST, *_PROGRAM_FILES)):
        return False
    return any((folder / name).exists() for name in _CLAUDE_PARTS) or bool(find_listing(folder))


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder, or None.
    Raises CodeloopError with the line if it is invalid.

    Without a manifest of ours, that of a Claude Code plugin is read, except its servers.
    """
    file = folder / MANIFEST
    if is_claude_plugin(folder):
        file = folder / CLAUDE_MANIFEST
    try:
        text = read_start(file, PAGE_BYTES.value).decode()
    except FileNotFoundError:
        if file.parent == folder:
            return None
        name = find_listing(folder).get("name")
        return Manifest(name=name if isinstance(name, str) else folder.name)
    except (OSError, UnicodeDecodeError) as error:
        raise CodeloopError(f"{file} can't be read: {error}.") from error
    try:
        if file.parent == folder:
            return msgspec.convert(parse_jsonc(text).value, Manifest)
        # Only these fields of Claude Code's manifest mean the same as ours.
        claude = msgspec.convert(parse_jsonc(text).value, _ClaudeManifest)
        return Manifest(name=claude.name, version=claude.version, description=claude.description)
    except JsoncError as error:
        raise CodeloopError(f"{file}:{error.position}: {error}") from error
    except msgspec.ValidationError as error:
        raise CodeloopError(f"{file}: {error}. It needs at least a `name`.") from error
