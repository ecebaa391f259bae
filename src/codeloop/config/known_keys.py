"""Finds unknown, misspelt and unsupported keys of the configuration, for warnings.

The supported keys are the fields of the structs in `schema/config.py` and
`schema/provider_config.py`; the tables here have all others.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from codeloop.config.sources import Layer, format_keys
from codeloop.kit.jsonc import KeyPath, is_list, is_object
from codeloop.kit.wildcard import matches
from codeloop.schema.config import (
    AgentConfig,
    CommandConfig,
    CommandsConfig,
    CompactionConfig,
    Config,
    FormatterConfig,
    ProjectSpendingConfig,
    SandboxConfig,
    SearchConfig,
    ServerConfig,
    SpendingConfig,
    SubagentsConfig,
    ToolOutputConfig,
    WatcherConfig,
    WorktreeConfig,
)
from codeloop.schema.permission import PERMISSION_NAMES
from codeloop.schema.provider_config import (
    ModalitiesConfig,
    ModelConfig,
    ModelCostConfig,
    ModelLimitConfig,
    ModelServiceConfig,
    ProviderConfig,
)
from codeloop.schema.wire import JSON

# Settings that a warning lists by name.
_MAX_LISTED_NAMES = 16
# Keys that are not fields of the structs and yet known: they are converted to others, or have no
# use in codeloop. For those of `_UNSUPPORTED_KEYS` there is another warning. Here and below, `*`
# joins lines of names: the formatter would give each name of one long tuple a line of its own.
_OTHER_KNOWN_KEYS: dict[type[msgspec.Struct], frozenset[str]] = {
    Config: frozenset(
        (
            *(
                "$schema",
                "tools",
                "mode",
                "logLevel",
                "autoshare",
                "theme",
                "keybinds",
                "tui",
                "layout",
                "references",
            ),
            *("reference", "subagent_depth", "attachment", "enterprise", "disable_lsp_download"),
        )
    ),
    ProviderConfig: frozenset(("id",)),
    ModelConfig: frozenset(
        ("family", "release_date", "experimental", "status", "provider", "knowledge")
    ),
    ServerConfig: frozenset(("mdns", "mdnsDomain")),
    CompactionConfig: frozenset(("tail_turns", "preserve_recent_tokens")),
}
_OTHER_SHAPES = frozenset(("permissions", "policies", "agents"))
"""Keys of OpenCode 2 that are read (`config/forms/version_two.py`), and suggested to nobody."""
_PROVIDER_OPTIONS = frozenset(
    (
        "baseURL",
        "apiKey",
        "apiKeyHelper",
        "apiKeyHelperTtl",
        "protocol",
        "headers",
        "timeout",
        "chunkTimeout",
    )
)
# Fields of the structs that no file may set: `config/trust` derives them.
_INTERNAL_KEYS = frozenset(("restrictions",))

# The sections of a struct: the key, the struct of its value, and whether the value is an object of
# many, by name: `provider` has many ProviderConfigs, `server` is one ServerConfig.
_SECTIONS: dict[type[msgspec.Struct], tuple[tuple[str, type[msgspec.Struct], bool], ...]] = {
    Config: (
        ("provider", ProviderConfig, True),
        ("command", CommandConfig, True),
        ("server", ServerConfig, False),
        ("search", SearchConfig, False),
        ("sandbox", SandboxConfig, False),
        ("compaction", CompactionConfig, False),
        ("budget", SpendingConfig, False),
        ("subagents", SubagentsConfig, False),
        ("tool_output", ToolOutputConfig, False),
        ("commands", CommandsConfig, False),
        ("formatter", FormatterConfig, True),
        ("watcher", WatcherConfig, False),
        ("worktree", WorktreeConfig, False),
    ),
    ProviderConfig: (("models", ModelConfig, True),),
    SpendingConfig: (("project", ProjectSpendingConfig, False),),
    ModelConfig: (
        ("limit", ModelLimitConfig, False),
        ("cost", ModelCostConfig, False),
        ("modalities", ModalitiesConfig, False),
        ("provider", ModelServiceConfig, False),
    ),
}


_AGENT_KEYS = frozenset(
    (
        *AgentConfig.__struct_encode_fields__,
        *("tools", "maxSteps", "top_k", "permissions", "disabled", "system", "request"),
    )
)
# Sections that may have any keys (options of a model,
# tools of a server): only likely misspellings are reported.
_OPEN_SECTIONS: tuple[tuple[KeyPath, frozenset[str]], ...] = (
    (("provider", "*", "options"), _PROVIDER_OPTIONS),
    (("permission",), PERMISSION_NAMES),
    (("tools",), PERMISSION_NAMES),
    *(
        (prefix, names)
        for section in ("agent", "mode", "agents")
        for prefix, names in (
            ((section, "*"), _AGENT_KEYS),
            ((section, "*", "permission"), PERMISSION_NAMES),
            ((section, "*", "tools"), PERMISSION_NAMES),
        )
    ),
    (("skills",), frozenset(("paths", "urls"))),
)
_RULE_LISTS: tuple[KeyPath, ...] = (
    ("permissions",),
    *((name, "*", "permissions") for name in ("agent", "mode", "agents")),
)
"""Rules in the form of OpenCode 2: lists of objects with `action`."""
_UNSUPPORTED_KEYS: tuple[KeyPath, ...] = (
    *((name,) for name in ("experimental", "autoupdate", "references")),
    *((name,) for name in ("reference", "subagent_depth", "attachment", "enterprise")),
    *((name,) for name in ("theme", "keybinds", "tui", "layout")),
    ("skills", "urls"),
    *(("compaction", name) for name in ("tail_turns", "preserve_recent_tokens")),
    *(("server", name) for name in ("mdns", "mdnsDomain")),
)
"""Settings of OpenCode that are not supported yet: each causes a warning,
so that nobody relies on it.
"""


_WAYS: tuple[tuple[KeyPath, str], ...] = (
    (("experimental", "batch_tool"), 'allow the tool by `"permission": {"batch": "allow"}`'),
    (("experimental", "primary_tools"), "deny tools to subagents by `agent.NAME.permission`"),
    (("experimental", "mcp_timeout"), "set `timeout` of each server in `mcp`"),
    (("autoupdate",), "update codeloop as you have installed it"),
    (("references",), "name the files in `instructions`"),
    (("reference",), "name the files in `instructions`"),
    (("subagent_depth",), "limit subagents by `subagents`"),
    *(((name,), "set it in tui.json") for name in ("theme", "keybinds", "tui", "layout")),
    (("skills", "urls"), "copy the skills to a folder, and name it in `skills.paths`"),
    (("server", "mdns"), "name the address of the server to its clients"),
    (("server", "mdnsDomain"), "name the address of the server to its clients"),
    (("share",), "write a page by `codeloop share`"),
    (("autoshare",), "write a page by `codeloop share`"),
    (("instructions", "*"), "save the page as a file, and name that"),
)
"""What to do instead of settings that are not supported."""


def find_way(keys: KeyPath) -> str:
    """Return the way that replaces a setting that is not supported; "": there is none."""
    for prefix, way in _WAYS:
        if len(prefix) == len(keys) and all(
            part in ("*", key) for part, key in zip(prefix, keys, strict=True)
        ):
            return way
    return ""


class UnknownKey(NamedTuple):
    """An unknown key, with similar known keys. `is_dropped`: the key has no effect;
    False: it is passed on.

    `value`: where not the key is unknown, but the name that it has as its value: that; else "".
    """

    keys: KeyPath
    suggestions: list[str]
    is_dropped: bool = True
    value: str = ""


def list_settings(kind: type[msgspec.Struct]) -> frozenset[str]:
    """Return the keys of a section that are supported and that a user may set."""
    return frozenset(kind.__struct_encode_fields__) - _INTERNAL_KEYS


def find_unknown_keys(
    value: Any, kind: type[msgspec.Struct] = Config, keys: KeyPath = ()
) -> Iterator[UnknownKey]:
    """Yield every unknown key; in sections that may have any key,
    only those similar to a known one.
    """
    from codeloop.kit.text.suggest import find_similar

    if not is_object(value):
        return
    known_keys = list_settings(kind) | _OTHER_KNOWN_KEYS.get(kind, frozenset())
    for key in value:
        if key not in known_keys and (keys or key not in _OTHER_SHAPES):
            yield UnknownKey((*keys, key), find_similar(key, sorted(known_keys)))
    for name, section, is_many in _SECTIONS.get(kind, ()):
        inner = value.get(name)
        if not is_many:
            yield from find_unknown_keys(inner, section, (*keys, name))
        elif is_object(inner):
            for each, entry in inner.items():
                yield from find_unknown_keys(entry, section, (*keys, name, each))
    if not keys:
        for prefix, names in _OPEN_SECTIONS:
            yield from _find_misspellings(value, prefix, names)
        for prefix in _RULE_LISTS:
            yield from _find_misspelt_actions(value, prefix)


def _find_misspellings(
    value: JSON, open_keys: KeyPath, names: frozenset[str]
) -> Iterator[UnknownKey]:
    for keys, section in find_values(value, open_keys):
        for key in section if is_object(section) else ():
            # In a rule that restricts, the names of other programs mean our tools.
            is_meant = names is PERMISSION_NAMES and _restricts(section[key])
            if is_meant and _find_meant_tools(key):
                continue
            if suggestions := _suggest_names(key, names):
                yield UnknownKey((*keys, key), suggestions, is_dropped=False)


def _find_meant_tools(name: str) -> list[str]:
    """Return our tools that a name of a rule means, with or without a pattern: `Bash(rm *)`."""
    # Imported late: most names are known.
    from codeloop.schema.tool_names import find_tools_by_alias

    return find_tools_by_alias(name.partition("(")[0])


def _restricts(value: Any) -> bool:
    """Return whether a rule with the name of another program's tool only denies or asks."""
    actions = value.values() if is_object(value) else [value]
    return all(action in ("deny", "ask", False) for action in actions)


def _find_misspelt_actions(value: JSON, list_keys: KeyPath) -> Iterator[UnknownKey]:
    for keys, rules in find_values(value, list_keys):
        for index, rule in enumerate(rules if is_list(rules) else ()):
            action = rule.get("action") if is_object(rule) else None
            if not isinstance(action, str):
                continue
            if _restricts(rule.get("effect")) and _find_meant_tools(action):
                continue
            if suggestions := _suggest_names(action, PERMISSION_NAMES):
                yield UnknownKey(
                    (*keys, index, "action"), suggestions, is_dropped=False, value=action
                )


def _suggest_names(name: str, names: frozenset[str]) -> list[str]:
    """Return the names that an unknown one may be meant for;
    empty: it is known, a wildcard for some, or far from all.

    A name that is far from all may be that of an extension's tool, or of a model's option.
    """
    from codeloop.kit.text.suggest import find_similar

    is_wildcard = any(char in name for char in "*?")
    if name in names or (is_wildcard and any(matches(each, name) for each in names)):
        return []
    meant = _find_meant_tools(name) if names is PERMISSION_NAMES else []
    return meant or find_similar(name, sorted(names))


def find_values(value: Any, prefix: KeyPath, keys: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the values at the path `prefix`, in which `*` stands for any key,
    each with its full path of keys.
    """
    if len(keys) == len(prefix):
        yield keys, value
    elif is_object(value):
        next_key = prefix[len(keys)]
        for key, inner in value.items():
            if next_key in ("*", key):
                yield from find_values(inner, prefix, (*keys, key))


def find_unsupported_keys(raw: JSON) -> Iterator[KeyPath]:
    """Yield the keys of every setting of a layer that is not supported yet."""
    for prefix in _UNSUPPORTED_KEYS:
        for keys, value in find_values(raw, prefix):
            # A setting that is switched off is not missed.
            if value and not (is_object(value) and value.get("enabled") is False):
                # Each experiment is a setting of its own, with a way of its own.
                is_group = keys == ("experimental",) and is_object(value)
                yield from (
                    ((*keys, name) for name, each in value.items() if each) if is_group else (keys,)
                )
    if raw.get("share") == "auto" or raw.get("autoshare") is True:
        yield ("share",) if "share" in raw else ("autoshare",)
    yield from (keys for keys, value in find_values(raw, ("compaction", "prune")) if value is False)
    instructions = raw.get("instructions")
    for index, each in enumerate(instructions if is_list(instructions) else ()):
        if isinstance(each, str) and each.startswith(("http://", "https://")):
            yield ("instructions", index)


def warn_of_unknown_keys(layer: Layer) -> list[str]:
    """Return a warning for each key of a layer that is not known."""
    from codeloop.kit.text.suggest import format_suggestion

    warnings: list[str] = []
    for keys, suggestions, is_dropped, value in find_unknown_keys(layer.raw):
        name = f"{format_keys(keys)} {value!a}" if value else format_keys(keys)
        problem = (
            f"unknown key {name}, ignored." if is_dropped else f"{name} means nothing to codeloop."
        )
        location = layer.format_location(keys, of_key=not value)
        warnings.append(f"{location}: {problem}{format_suggestion(suggestions)}")
    return warnings


def warn_of_unsupported_keys(layers: list[Layer]) -> list[str]:
    """Return one warning that lists the configured settings that are not supported yet;
    empty: there are none.
    """
    names = {
        format_keys(keys): layer.format_location(keys, of_key=True)
        for layer in layers
        for keys in find_unsupported_keys(layer.raw)
    }
    if not names:
        return []
    texts = [f"{name} ({position})" for name, position in names.items()]
    ways = {
        format_keys(keys): find_way(keys)
        for layer in layers
        for keys in find_unsupported_keys(layer.raw)
    }
    instead = "".join(f" Instead of {name}, {way}." for name, way in ways.items() if way)
    return [f"Not supported yet and ignored: {join_names(texts)}.{instead}"]


def join_names(names: list[str]) -> str:
    """Return names in one text; of many, how many are left out."""
    rest = f" and {len(names) - _MAX_LISTED_NAMES} more" if len(names) > _MAX_LISTED_NAMES else ""
    return ", ".join(names[:_MAX_LISTED_NAMES]) + rest
