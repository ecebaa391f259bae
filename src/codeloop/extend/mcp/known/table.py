"""The configured servers of a project and their tools, as they are remembered: no server and no package is loaded."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from codeloop.config.paths import Paths
from codeloop.extend.mcp.known.definition import LocalDefinition, ServerDefinition
from codeloop.extend.mcp.known.last_failures import LastFailures
from codeloop.extend.mcp.known.listing import ListedTool, Listing, Listings
from codeloop.extend.mcp.known.names import plain, tool_names
from codeloop.workspace.workspace import Workspace

_FOLDER = "mcp"


class TablePlace(Struct, frozen=True):
    """Where the servers of a project live: its work tree, our folders, that of their logs.

    `tell` hears the name of a server whose state or tools have changed.
    """

    workspace: Workspace
    paths: Paths
    logs: Path
    tell: Callable[[str], None]

    @property
    def listings(self) -> Listings:
        """What servers offered when they were last looked at."""
        return Listings(self.paths.state / _FOLDER)

    @property
    def failures(self) -> LastFailures:
        """Why servers did not work when they were last tried."""
        return LastFailures(self.paths.state / _FOLDER)

    @property
    def known(self) -> Path:
        """The file of definitions that were used before."""
        return self.paths.state / _FOLDER / "known.json"

    def log(self, server: str) -> Path:
        """Return where a server's log is."""
        return self.logs / f"{plain(server)}.log"


class ServerTool(Struct, frozen=True):
    """A tool of a server under the name that models call it by."""

    name: str
    server: str
    listed: ListedTool
    is_local: bool


class RunningServers(Protocol):
    """The servers once one of them was needed: see `servers.py`."""

    @property
    def is_busy(self) -> bool:
        """Return whether any of them runs."""
        ...

    @property
    def listings(self) -> Mapping[str, Listing]:
        """What they offer, as far as it is known."""
        ...

    async def close(self) -> None:
        """End them all."""
        ...


class McpTable:
    """See the module. A part of the work tree: closing that ends what was started."""

    def __init__(
        self,
        definitions: Mapping[str, ServerDefinition],
        place: TablePlace,
        taken: frozenset[str],
        start: Callable[["McpTable"], RunningServers],
    ) -> None:
        self.definitions = dict(definitions)
        self.place = place
        self._taken = taken
        self._start = start
        self._running: RunningServers | None = None

    @cached_property
    def remembered(self) -> dict[str, Listing]:
        """What the usable servers offered last, by name; those that nobody has looked at are left out."""
        listings = self.place.listings
        found = {name: listings.get(each.digest) for name, each in self.definitions.items() if each.is_enabled}
        return {name: listing for name, listing in found.items() if listing is not None}

    @property
    def listings(self) -> Mapping[str, Listing]:
        """What servers offer, as far as it is known now."""
        return self._running.listings if self._running is not None else self.remembered

    @property
    def unknown(self) -> list[str]:
        """The usable servers that nobody has looked at."""
        known = self.listings
        return [name for name, each in self.definitions.items() if each.is_enabled and name not in known]

    @property
    def running(self) -> Any:
        """The servers themselves, McpServers; what they need is loaded when they are first asked for."""
        if self._running is None:
            self._running = self._start(self)
        return self._running

    @property
    def is_busy(self) -> bool:
        """Return whether a server runs."""
        return self._running is not None and self._running.is_busy

    async def close(self) -> None:
        """End what was started."""
        if self._running is not None:
            await self._running.close()

    def tools(self, listings: Mapping[str, Listing]) -> dict[str, ServerTool]:
        """Return the wanted tools of listings by the names that models call them by."""
        listed = {
            (server, tool.name): tool
            for server, listing in listings.items()
            for tool in listing.tools
            if _is_wanted(self.definitions[server], tool.name)
        }
        local = {name for name, each in self.definitions.items() if isinstance(each.how, LocalDefinition)}
        return {
            name: ServerTool(name, server, listed[server, tool], server in local)
            for name, (server, tool) in tool_names(listed, self._taken).items()
        }


def _is_wanted(definition: ServerDefinition, tool: str) -> bool:
    """Return whether a tool passes the `tools` of its definition: the last wildcard that matches counts."""
    wanted = definition.how.tools if definition.how is not None else []
    found = not wanted or wanted[0].startswith("!")
    for pattern in wanted:
        if fnmatchcase(tool, pattern.removeprefix("!")):
            found = not pattern.startswith("!")
    return found
