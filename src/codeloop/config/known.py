"""Which keys a configuration may hold: those that we use, and those of the reference that we pass over silently."""

from collections.abc import Iterator
from typing import Any

import msgspec

from codeloop.kit.jsonc import Path as Keys
from codeloop.kit.jsonc import is_object
from codeloop.schema.config import (
    CommandConfig,
    CompactionConfig,
    Config,
    ModalitiesConfig,
    ModelConfig,
    ModelCostConfig,
    ModelLimitConfig,
    ProviderConfig,
    ServerConfig,
    ToolOutputConfig,
)

# Normalised into other keys, or of no use to us.
_ACCEPTED: dict[type[msgspec.Struct], frozenset[str]] = {
    Config: frozenset(
        (
            *("$schema", "tools", "mode", "logLevel", "autoshare", "theme", "keybinds", "tui", "layout", "references"),
            *("reference", "subagent_depth", "attachment", "enterprise", "disable_lsp_download"),
        )
    ),
    ProviderConfig: frozenset(("id",)),
    ModelConfig: frozenset(("family", "release_date", "experimental", "status", "provider", "variants", "knowledge")),
    ModelCostConfig: frozenset(("context_over_200k",)),
    ServerConfig: frozenset(("mdns", "mdnsDomain")),
    CompactionConfig: frozenset(("tail_turns", "preserve_recent_tokens")),
}
_OURS_ALONE = frozenset(("restrictions",))

# The sections below a struct: the key, the struct it holds, and whether it holds many of them by name.
_SECTIONS: dict[type[msgspec.Struct], tuple[tuple[str, type[msgspec.Struct], bool], ...]] = {
    Config: (
        ("provider", ProviderConfig, True),
        ("command", CommandConfig, True),
        ("server", ServerConfig, False),
        ("compaction", CompactionConfig, False),
        ("tool_output", ToolOutputConfig, False),
    ),
    ProviderConfig: (("models", ModelConfig, True),),
    ModelConfig: (
        ("limit", ModelLimitConfig, False),
        ("cost", ModelCostConfig, False),
        ("modalities", ModalitiesConfig, False),
    ),
}


def settings(kind: type[msgspec.Struct]) -> frozenset[str]:
    """Give the keys of a section that a person may set and that mean something to us."""
    return frozenset(kind.__struct_encode_fields__) - _OURS_ALONE


def unknown_keys(value: Any, kind: type[msgspec.Struct] = Config, keys: Keys = ()) -> Iterator[Keys]:
    """Give the way to every key that nothing will ever read. An agent's further keys are its model's options."""
    if not is_object(value):
        return
    known = settings(kind) | _ACCEPTED.get(kind, frozenset())
    for key in value:
        if key not in known:
            yield (*keys, key)
    for name, section, is_many in _SECTIONS.get(kind, ()):
        inner = value.get(name)
        if not is_many:
            yield from unknown_keys(inner, section, (*keys, name))
        elif is_object(inner):
            for each, entry in inner.items():
                yield from unknown_keys(entry, section, (*keys, name, each))
