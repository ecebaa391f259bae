"""The table of a project's configured servers and their tools,
known from the cache before any server runs.

The `McpServers`, which run them, and their package are imported only when they are needed.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from codeloop.config.paths import Paths
from codeloop.extend.mcp.cache.last_failures import LastFailures
from codeloop.extend.mcp.cache.listing import ListedTool, Listing, Listings
from codeloop.extend.mcp.definition import LocalDefinition, ServerDefinition
from codeloop.workspace.workspace import Workspace

_REJECTED_CHARS = r"[^a-zA-Z0-9_-]+"
# Model services accept no longer names of tools.
_MAX_NAME_CHARS = 64
_HASH_CHARS = 6


def _clean_name(name: str) -> str:
    """Replace characters that services reject in tool names by `_`."""
    return re.sub(_REJECTED_CHARS, "_", name)


def _choose_tool_names(
    tools: Iterable[tuple[str, str]], reserved: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Return the server and the tool by the name that models call them by.
    A taken or too long name gets a hash.

    `tools`: pairs of a server and its tool. The hash depends on these two names alone,
    so it is the same in every session.
    """
    names: dict[str, tuple[str, str]] = {}
    for server, tool in tools:
        name = f"{_clean_name(server)}_{_clean_name(tool)}"
        if len(name) > _MAX_NAME_CHARS or name in names or name in reserved:
            digest = hashlib.sha256(
                f"{server}\n{tool}".encode("utf-8", "surrogatepass")
            ).hexdigest()
            name = f"{name[: _MAX_NAME_CHARS - _HASH_CHARS - 1]}_{digest[:_HASH_CHARS]}"
        names.setdefault(name, (server, tool))
    return names


STATE_FOLDER = "mcp"
# Claude Code names the tools of servers `mcp__server__tool`.
_GENERIC_PREFIX = r"^mcp_+(?=.)"
# Models know names from other programs, which write these between a server's name and its tool's.
_SEPARATORS = "_./:-"


class McpProject(Struct, frozen=True):
    """The project of the servers: its work tree, our folders, the folder of their logs,
    and whether it is trusted.

    `tell` gets the name of a server whose state or tools changed, `warn` a line for the user.
    """

    workspace: Workspace
    paths: Paths
    logs: Path
    tell: Callable[[str], None]
    warn: Callable[[str], None]
    is_trusted: bool

    @property
    def listings(self) -> Listings:
        """The cached listings."""
        return Listings(self.paths.state / STATE_FOLDER)

    @property
    def failures(self) -> LastFailures:
        """The last failures."""
        return LastFailures(self.paths.state / STATE_FOLDER)

    @property
    def known_file(self) -> Path:
        """The file of the definitions that were approved."""
        return self.paths.state / STATE_FOLDER / "known.json"

    def get_server_folder(self, definition: ServerDefinition) -> Path:
        """Return a server's own folder: for a user's server, shared by all projects,
        its working directory.
        """
        above = self.logs.with_name("servers") if definition.scope else self.paths.data / "servers"
        return above / _clean_name(definition.name)

    def get_log_path(self, server: str) -> Path:
        """Return a server's log file."""
        return self.logs / f"{_clean_name(server)}.log"


class ServerTool(Struct, frozen=True):
    """A tool of a server. `name`: the one that models call it by.
    `is_local`: the server is a program.
    """

    name: str
    server: str
    listed: ListedTool
    is_local: bool


class RunningServers(Protocol):
    """What the table uses of the `McpServers` in `mcp_servers.py`."""

    @property
    def is_busy(self) -> bool:
        """Whether any server is being started."""
        ...

    @property
    def listings(self) -> Mapping[str, Listing]:
        """The known listings of the servers."""
        ...

    async def rest(self) -> None:
        """End the programs that wait for a next call."""
        ...

    async def close(self) -> None:
        """End all servers."""
        ...


class McpTable:
    """The configured servers of a project with their cached listings."""

    def __init__(
        self,
        definitions: Mapping[str, ServerDefinition],
        project: McpProject,
        reserved: frozenset[str],
        make_servers: Callable[["McpTable"], RunningServers],
    ) -> None:
        """`reserved`: names that no tool of a server may get.
        `make_servers`: makes the McpServers of this table.
        """
        self.definitions = dict(definitions)
        self.project = project
        self._reserved_names = reserved
        self._make_servers = make_servers
        self._running: RunningServers | None = None
        self._offered_listings: dict[str, Listing] = {}

    @cached_property
    def cached_listings(self) -> dict[str, Listing]:
        """The cached listings of usable servers, by name; unknown servers are left out."""
        listings = self.project.listings
        listings_by_name = {
            name: listings.get(each.listing_key)
            for name, each in self.definitions.items()
            if each.is_enabled
        }
        return {name: listing for name, listing in listings_by_name.items() if listing is not None}

    @property
    def listings(self) -> Mapping[str, Listing]:
        """The currently known listings."""
        return self._running.listings if self._running is not None else self.cached_listings

    @property
    def unknown(self) -> list[str]:
        """The usable servers without a listing."""
        listings = self.listings
        return [
            name
            for name, each in self.definitions.items()
            if each.is_enabled and name not in listings
        ]

    def offer(self) -> dict[str, ServerTool]:
        """Return the currently known tools; `has_other_tools` compares with them."""
        # A copy: `has_other_tools` compares later listings with it.
        self._offered_listings = dict(self.listings)
        return self.name_tools(self._offered_listings)

    @property
    def has_other_tools(self) -> bool:
        """Whether a server's offered tools changed; servers found since then do not count.

        That way requests keep their cached prefix.
        """
        current = self.listings
        return any(
            name in current and current[name].tools != offered.tools
            for name, offered in self._offered_listings.items()
        )

    def match_servers(self, tool: str) -> dict[str, str]:
        """Return the usable servers whose name a tool's name begins with,
        each with the tool's name in our form.

        `mcp__docs__search`, `docs.search` and `docs_search` are `docs_search` of the server `docs`.
        """
        specific_name = re.sub(_GENERIC_PREFIX, "", tool)
        servers: dict[str, str] = {}
        for server, definition in self.definitions.items():
            prefix = _clean_name(server)
            if not definition.is_enabled or not specific_name.startswith(prefix):
                continue
            rest = specific_name[len(prefix) :]
            tool_name = rest.lstrip(_SEPARATORS)
            if rest != tool_name and tool_name:
                servers[server] = f"{prefix}_{tool_name}"
        return servers

    @property
    def running(self) -> Any:
        """The McpServers, imported at first use."""
        if self._running is None:
            self._running = self._make_servers(self)
        return self._running

    @property
    def is_busy(self) -> bool:
        """Whether a server is being started."""
        return self._running is not None and self._running.is_busy

    async def rest(self) -> None:
        """End the programs that wait for a next call, which starts them again."""
        if self._running is not None:
            await self._running.rest()

    async def close(self) -> None:
        """End started servers."""
        if self._running is not None:
            await self._running.close()

    def name_tools(self, listings: Mapping[str, Listing]) -> dict[str, ServerTool]:
        """Return the wanted tools of listings by the names that models call them by."""
        tools_by_name = {
            (server, tool.name): tool
            for server, listing in listings.items()
            for tool in listing.tools
            if _is_wanted(self.definitions[server], tool.name)
        }
        local_servers = {
            name
            for name, each in self.definitions.items()
            if isinstance(each.config, LocalDefinition)
        }
        return {
            name: ServerTool(
                name, server, tools_by_name[server, tool], is_local=server in local_servers
            )
            for name, (server, tool) in _choose_tool_names(
                tools_by_name, self._reserved_names
            ).items()
        }


def _is_wanted(definition: ServerDefinition, tool: str) -> bool:
    """Return whether a tool passes the `tools` of its definition: the last
    wildcard that matches counts.
    """
    patterns = definition.config.tools if definition.config is not None else []
    # A list that begins with an exclusion starts from all tools.
    is_wanted = not patterns or patterns[0].startswith("!")
    for pattern in patterns:
        if fnmatchcase(tool, pattern.removeprefix("!")):
            is_wanted = not pattern.startswith("!")
    return is_wanted
