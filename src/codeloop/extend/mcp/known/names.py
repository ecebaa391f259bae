"""Names of tools as models may call them: the server's, `_`, the tool's, unlike every other tool's."""

import hashlib
import re
from collections.abc import Collection, Iterable

_OTHER = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST = 64
_HASH = 6


def plain(name: str) -> str:
    """Return a name with `_` for everything that services do not take in names of tools."""
    return _OTHER.sub("_", name)


def tool_names(pairs: Iterable[tuple[str, str]], taken: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return server and tool by the name that a model calls them by. One that is taken, or too long, gets a hash."""
    found: dict[str, tuple[str, str]] = {}
    for server, tool in pairs:
        name = f"{plain(server)}_{plain(tool)}"
        if len(name) > _LONGEST or name in found or name in taken:
            mark = hashlib.sha256(f"{server}\n{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
            name = f"{name[: _LONGEST - _HASH - 1]}_{mark}"
        found.setdefault(name, (server, tool))
    return found
