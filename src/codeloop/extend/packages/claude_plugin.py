"""Reads a plugin folder of Claude Code: its hooks and MCP servers, as our configuration.
Runs nothing.
"""

from pathlib import Path
from typing import Any

from codeloop.config.files import read_text
from codeloop.config.forms.server_entries import convert_entry
from codeloop.config.hook_rows import HOOK_EVENTS, find_hooks_error, list_hook_fields
from codeloop.config.sources import Layer
from codeloop.extend.packages.manifest import CLAUDE_MANIFEST
from codeloop.extend.packages.marketplace import find_listing
from codeloop.kit.jsonc import Document, is_list, is_object, parse_jsonc
from codeloop.lsp.servers.server_row import load_server_rows
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.wire import JSON

HOOKS_FILE = "hooks/hooks.json"
SERVERS_FILE = ".mcp.json"
_ROOT_REFERENCE = "${CLAUDE_PLUGIN_ROOT}"
_UNSUPPORTED_PARTS = (
    "output-styles",
    "outputStyles",
    "monitors",
    "themes",
)
# Keys of a manifest that name folders; each has the name of the only folder that is read.
_PAGE_FOLDERS = ("agents", "commands", "skills")


class ClaudePlugin:
    """The hooks, MCP servers and warnings of a plugin's folder.
    Its pages are read like those of any home.
    """

    def __init__(self, folder: Path, names: frozenset[str]) -> None:
        self.files = [folder / HOOKS_FILE, folder / SERVERS_FILE]
        self.hooks: dict[str, list[JSON]] = {}
        self.servers: JSON = {}
        self.language_servers: JSON = {}
        self._folder = folder
        self._unsupported: set[str] = set()
        self._problems: list[str] = []
        # What a plugin's marketplace says of it counts where its own manifest says nothing.
        manifest = {**find_listing(folder), **self._read(folder / CLAUDE_MANIFEST)}
        self._unsupported.update(
            name for name in _UNSUPPORTED_PARTS if name in names or name in manifest
        )
        for source in (".lsp.json", *_as_list(manifest.get("lspServers"))):
            self._add_language_servers(source)
        self._unsupported.update(
            f"{key} in {path}"
            for key in _PAGE_FOLDERS
            for path in _as_list(manifest.get(key))
            if Path(str(path)).parts[:1] != (key,)
        )
        for source in (HOOKS_FILE, *_as_list(manifest.get("hooks"))):
            self._add_hooks(source)
        # Checked before they are merged, so that an error leaves out the hooks
        # of this plugin alone.
        layer = Layer(
            "global", str(folder / HOOKS_FILE), folder, Document("", {"hooks": self.hooks})
        )
        if problem := find_hooks_error(layer):
            self._problems.append(f"{problem} The hooks of this plugin are left out.")
            self.hooks.clear()
        for source in (SERVERS_FILE, *_as_list(manifest.get("mcpServers"))):
            self._add_servers(source)

    @property
    def values(self) -> JSON:
        """The configuration that it adds."""
        data: JSON = {"hooks": self.hooks, "mcp": self.servers, "lsp": self.language_servers}
        return {name: value for name, value in data.items() if value}

    @property
    def warnings(self) -> list[str]:
        """A line for each unreadable file, and one for all unused parts."""
        names = ", ".join(sorted(self._unsupported))
        return [
            *self._problems,
            *([f"{self._folder}: not used of this plugin: {names}."] if names else []),
        ]

    def _read(self, file: Path) -> JSON:
        self.files.append(file)
        try:
            text = read_text(file, CONFIG_BYTES.value)
            value = parse_jsonc(text, depth=CONFIG_DEPTH.value).value if text is not None else None
        except (CodeloopError, ValueError) as error:
            self._problems.append(f"{file} is left out: {error}")
            return {}
        return value if is_object(value) else {}

    def _load(self, source: Any) -> JSON:
        """Return the settings at a key of the manifest: an object itself,
        or the contents of the file that it names.
        """
        return source if is_object(source) else self._read(self._folder / str(source))

    def _add_language_servers(self, source: Any) -> None:
        """Add those for files that no server of codeloop's table is for."""
        entries = self._load(source)
        if not entries:
            return
        known = {ending for row in load_server_rows() for ending in row.languages}
        for name, entry in entries.items():
            if not is_object(entry) or not isinstance(entry.get("command"), str):
                self._problems.append(
                    f"{self._folder}: the language server {name} is left out: it has no `command`."
                )
                continue
            languages = entry.get("extensionToLanguage")
            endings = list(languages) if is_object(languages) else []
            if not known.issuperset(endings):
                words = [entry["command"], *map(str, _as_list(entry.get("args")))]
                self.language_servers[name] = {
                    "command": _replace_root(words, self._folder),
                    "extensions": endings,
                    **({"env": entry["env"]} if is_object(entry.get("env")) else {}),
                    **(
                        {"initialization": entry["initializationOptions"]}
                        if is_object(entry.get("initializationOptions"))
                        else {}
                    ),
                }

    def _add_servers(self, source: Any) -> None:
        data = self._load(source)
        # Both forms exist: the table itself, and a file that has it under `mcpServers`.
        servers = data.get("mcpServers", data)
        for name, entry in servers.items() if is_object(servers) else ():
            entry_data: JSON = _replace_root(entry, self._folder) if is_object(entry) else {}
            server = convert_entry(name, self._folder / SERVERS_FILE, entry_data)
            if server.problem:
                self._problems.append(
                    f"{self._folder}: the MCP server {name} is left out: {server.problem}."
                )
            else:
                self.servers[name] = server.entry

    def _add_hooks(self, source: Any) -> None:
        data = self._load(source)
        events = data.get("hooks", data)
        for event, groups in events.items() if is_object(events) else ():
            if event == "description":
                continue
            if event not in HOOK_EVENTS:
                self._unsupported.add(f"the event {event}")
                continue
            for group in filter(is_object, _as_list(groups)):
                rows = [self._convert_row(row) for row in _as_list(group.get("hooks"))]
                supported_rows = [row for row in rows if row is not None]
                if not supported_rows:
                    continue
                matcher = group.get("matcher")
                matcher_fields = {"matcher": matcher} if isinstance(matcher, str) else {}
                self.hooks.setdefault(event, []).append({**matcher_fields, "hooks": supported_rows})

    def _convert_row(self, row: Any) -> JSON | None:
        """Return a row with the supported fields; None if it is invalid,
        or hooks of its type are not supported.
        """
        if not is_object(row):
            self._unsupported.add("a hook that is not an object")
            return None
        kind = row.get("type", "command")
        known_keys = list_hook_fields(str(kind))
        if not known_keys:
            self._unsupported.add(f"hooks of the type {kind}")
            return None
        if "command" in known_keys and not isinstance(row.get("command"), str):
            self._unsupported.add("a hook without its `command`")
            return None
        self._unsupported.update(f"`{key}` of hooks" for key in row.keys() - known_keys)
        return {
            **{key: row[key] for key in row.keys() & known_keys},
            "pluginRoot": str(self._folder),
        }


def _as_list(value: Any) -> list[Any]:
    """Return a list as it is, a single value in a list, and None as an empty list."""
    if is_list(value):
        return value
    return [] if value is None else [value]


def _replace_root(value: Any, folder: Path) -> Any:
    """Return a value with the folder in place of each reference to the plugin's root."""
    if isinstance(value, str):
        return value.replace(_ROOT_REFERENCE, str(folder))
    if is_list(value):
        return [_replace_root(each, folder) for each in value]
    return (
        {key: _replace_root(each, folder) for key, each in value.items()}
        if is_object(value)
        else value
    )
