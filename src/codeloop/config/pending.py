"""Settings of the reference that codeloop knows and does not act on yet: each is named, so that nobody relies on it."""

from collections.abc import Iterator
from typing import Any

from codeloop.config.known_keys import found
from codeloop.kit.jsonc import Path as Keys
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON

_PENDING: tuple[Keys, ...] = (
    *((name,) for name in ("plugin", "lsp", "formatter", "watcher", "experimental", "autoupdate", "references")),
    *((name,) for name in ("reference", "subagent_depth", "attachment", "enterprise")),
    *((name,) for name in ("theme", "keybinds", "tui", "layout")),
    ("mcp", "*"),
    ("skills", "urls"),
    *(("compaction", name) for name in ("tail_turns", "preserve_recent_tokens")),
    *(("server", name) for name in ("mdns", "mdnsDomain")),
    *((section, "*", "variant") for section in ("agent", "mode", "command")),
    *(("provider", "*", "models", "*", name) for name in ("variants", "provider")),
    ("provider", "*", "models", "*", "cost", "context_over_200k"),
)


def pending(raw: JSON) -> Iterator[Keys]:
    """Yield the way to every setting of a layer that asks for something which does not happen yet."""
    for place in _PENDING:
        for keys, value in found(raw, place):
            if value and not (is_object(value) and value.get("enabled") is False):
                yield keys
    if raw.get("share") == "auto" or raw.get("autoshare") is True:
        yield ("share",) if "share" in raw else ("autoshare",)
    if _at(raw, "compaction", "prune") is False:
        yield ("compaction", "prune")
    instructions = raw.get("instructions")
    for index, each in enumerate(instructions if is_list(instructions) else ()):
        if isinstance(each, str) and each.startswith(("http://", "https://")):
            yield ("instructions", index)


def _at(raw: JSON, section: str, key: str) -> Any:
    inner = raw.get(section)
    return inner.get(key) if is_object(inner) else None
