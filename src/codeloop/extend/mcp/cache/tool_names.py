"""The names of MCP servers' tools: made of two names, in the characters and the length that services accept. Pure."""

import hashlib
import re
from collections.abc import Collection, Iterable

_REJECTED_CHARS = r"[^a-zA-Z0-9_-]+"
# Model services accept no longer names of tools.
_MAX_NAME_CHARS = 64
_HASH_CHARS = 6


def clean_name(name: str) -> str:
    """Replace characters that services reject in tool names by `_`."""
    return re.sub(_REJECTED_CHARS, "_", name)


def choose_tool_names(tools: Iterable[tuple[str, str]], reserved: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the server and the tool by the name that models call them by. A taken or too long name gets a hash.

    `tools`: pairs of a server and its tool. The hash depends on these two names alone, so it is the same in every
    session.
    """
    names: dict[str, tuple[str, str]] = {}
    for server, tool in tools:
        name = f"{clean_name(server)}_{clean_name(tool)}"
        if len(name) > _MAX_NAME_CHARS or name in names or name in reserved:
            digest = hashlib.sha256(f"{server}\n{tool}".encode("utf-8", "surrogatepass")).hexdigest()
            name = f"{name[: _MAX_NAME_CHARS - _HASH_CHARS - 1]}_{digest[:_HASH_CHARS]}"
        names.setdefault(name, (server, tool))
    return names
