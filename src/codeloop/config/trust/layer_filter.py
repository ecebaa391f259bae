"""Filters the configuration of an untrusted project: settings that would
permit more are left out.
"""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from codeloop.config.forms.normalise import NormalisedValues
from codeloop.config.sources import format_keys
from codeloop.kit.jsonc import KeyPath, is_list, is_object
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import (
    CONFIG_PATTERNS,
    CONFIG_RULES,
    TOOL_OUTPUT_BYTES,
    TOOL_OUTPUT_LINES,
)
from codeloop.schema.permission import Profile, parse_profile
from codeloop.schema.wire import JSON

_MODEL_NAME = r"[\w.-]+/[\w.:@/+-]+"
# A `?` counts for so many characters more: a pattern with wildcards takes longer to search for.
_QUESTION_MARK_COST = 19
_SHARE_RANKS = {"auto": 0, "manual": 1, "disabled": 2}
"""How strict the values of `share` are."""
_STRICTER_PROFILES: dict[Profile, tuple[Profile, ...]] = {
    "yolo": ("auto", "ask", "read-only"),
    "auto": ("ask", "read-only"),
}
"""The stricter profiles of each. `read-only` is not stricter than `ask`: it
fetches pages without asking.
"""
# How strict the values of the sandbox's keys are; the first value is the default.
_SANDBOX_RANKS = {
    "mode": {"auto": 1, "off": 0, "required": 2},
    "network": {"hosts": 1, "on": 0, "off": 2},
}
_OUTPUT_LIMITS = {"max_lines": TOOL_OUTPUT_LINES.value, "max_bytes": TOOL_OUTPUT_BYTES.value}
"""The default limits of `tool_output`."""


def filter_layer(values: NormalisedValues, base: JSON) -> tuple[NormalisedValues, list[str]]:
    """Return the settings of an untrusted project's layer that may change `base`,
    and the names of the others.

    `base`: the merged values of the layers before it. The layer's permission rules become
    `restrictions` (see `config.trust.restrictions`).
    Raises CodeloopError if there are too many of these.
    """
    result = NormalisedValues(values.layer, {}, dict(values.source_keys))
    ignored_names: list[str] = []
    for key, value in values.values.items():
        if key == "permission":
            _keep_as_restrictions(result, result.values, value, (), ignored_names)
        elif key == "agent":
            for name, agent in value.items():
                _filter_agent(result, name, agent, base, ignored_names)
        else:
            allowed = _FILTERS[key](value, base) if key in _FILTERS else None
            if allowed is None or _lacks_part(allowed, value):
                ignored_names.append(format_keys(result.find_source_keys((key,))))
            if allowed is not None:
                result.values[key] = allowed
            if is_list(allowed):
                for index, each in enumerate(allowed):
                    result.source_keys[key, index] = (
                        (key, value.index(each)) if each in value else (key,)
                    )
    return result, ignored_names


def _lacks_part(allowed: Any, value: Any) -> bool:
    """Return whether a filter has dropped a part of a value."""
    return any(each not in allowed for each in value) if is_list(value) else allowed != value


def _filter_agent(
    values: NormalisedValues, name: str, agent: JSON, base: JSON, ignored_names: list[str]
) -> None:
    """Keep an agent's rules as restrictions, and its limit of steps if that is not
    higher than the present limit.
    """
    narrow: JSON = {}
    for key, value in agent.items():
        keys = ("agent", name, key)
        if key == "permission":
            _keep_as_restrictions(values, narrow, value, ("agent", name), ignored_names)
        elif (
            key == "steps"
            and _is_count(value)
            and value <= _read_count(base, "agent", name, "steps", default=value)
        ):
            narrow["steps"] = value
        # A `mode` without a path in the file is not a setting: `normalise_layer` adds
        # it for the old key `mode`.
        elif key == "disable" and value is True:
            narrow["disable"] = True
        elif key != "mode" or keys in values.source_keys:
            ignored_names.append(format_keys(values.find_source_keys(keys)))
    if narrow:
        values.values.setdefault("agent", {})[name] = narrow


def restrict_by_rules(values: NormalisedValues) -> None:
    """Make the rules of a layer restrictions, too: of its own rules only those
    that allow something stay.

    As rules, those that ask would come after the user's and lift a denial.
    """
    sections: list[tuple[JSON, KeyPath]] = [(values.values, ())]
    sections += [(agent, ("agent", name)) for name, agent in values.values.get("agent", {}).items()]
    for section, keys in sections:
        rules: list[JSON] = section.get("permission", [])
        if rules:
            section["restrictions"] = rules
            section["permission"] = [rule for rule in rules if rule["action"] == "allow"]
            for index in range(len(rules)):
                values.source_keys[*keys, "restrictions", index] = (*keys, "permission", index)


def _keep_as_restrictions(
    values: NormalisedValues,
    section: JSON,
    rules: list[JSON],
    keys: KeyPath,
    ignored_names: list[str],
) -> None:
    if len(rules) > CONFIG_RULES.value:
        where = values.layer.format_location(
            values.find_source_keys((*keys, "permission", CONFIG_RULES.value))
        )
        raise CodeloopError(
            f"{where}: more than {CONFIG_RULES.value} permission rules in a project that is not trusted. "
            "Look at them, then trust it with `codeloop trust`, or remove some."
        )
    wildcards = "".join(rule["permission"] + rule["pattern"] for rule in rules)
    if len(wildcards) + _QUESTION_MARK_COST * wildcards.count("?") > CONFIG_PATTERNS.value:
        raise CodeloopError(
            f"{values.layer.format_location(values.find_source_keys((*keys, 'permission')))}: "
            "the permission rules of a project that is not "
            "trusted are too long to be compared with each command. "
            "Look at them, then trust it with `codeloop trust`, or remove some."
        )
    section["restrictions"] = rules
    for index, rule in enumerate(rules):
        source_keys = values.find_source_keys((*keys, "permission", index))
        values.source_keys[*keys, "restrictions", index] = source_keys
        if rule["action"] == "allow":
            ignored_names.append(f"{format_keys(source_keys)} (allow)")


def _filter_instructions(value: Any, _base: JSON) -> Any:
    """Keep paths inside the work tree. Links are checked when the files are read."""
    inside = (
        [each for each in value if isinstance(each, str) and _is_inside(each)]
        if is_list(value)
        else []
    )
    return inside or None


def _is_inside(path: str) -> bool:
    is_reference = "{env:" in path or "{file:" in path or ":" in path.split("/", maxsplit=1)[0]
    return not (
        is_reference or path.startswith(("/", "~", "$")) or ".." in PurePosixPath(path).parts
    )


def _make_model_filter(key: str) -> Callable[[Any, JSON], Any]:
    """Return the filter of a key that names a model: a project may choose one if the user did not.

    The model can't be one of a provider that the project defines, since its providers are ignored.
    """

    def accept(value: Any, base: JSON) -> Any:
        is_plain = isinstance(value, str) and re.fullmatch(_MODEL_NAME, value) is not None
        # A value of the user stays.
        return value if is_plain and base.get(key) in (None, value) else None

    return accept


def _filter_disabled(value: Any, base: JSON) -> Any:
    if not is_list(value):
        return None
    disabled = base.get("disabled_providers")
    present = disabled if is_list(disabled) else []
    return [*present, *(each for each in value if isinstance(each, str) and each not in present)]


def _filter_enabled(value: Any, base: JSON) -> Any:
    """Keep a shorter list of the providers that may be used."""
    present = base.get("enabled_providers")
    if not is_list(value):
        return None
    return [
        each
        for each in value
        if isinstance(each, str) and (not is_list(present) or each in present)
    ]


def _filter_providers(value: Any, base: JSON) -> Any:
    """Keep the models that are left out (`blacklist`) of providers that the user has."""
    result: JSON = {}
    for name, entry in value.items() if is_object(value) else ():
        models = entry.get("blacklist") if is_object(entry) else None
        if is_list(models):
            present = base.get("provider", {}).get(name, {}).get("blacklist", [])
            added = (each for each in models if isinstance(each, str) and each not in present)
            result[name] = {"blacklist": [*present, *added]}
    return result or None


def _filter_servers(value: Any, base: JSON) -> Any:
    """Keep which of the user's servers are switched off."""
    present = base.get("mcp", {})
    entries = value.items() if is_object(value) else ()
    off = [
        name
        for name, entry in entries
        if is_object(entry) and entry.get("enabled") is False and name in present
    ]
    return {name: {"enabled": False} for name in off} or None


def _filter_share(value: Any, base: JSON) -> Any:
    present = base.get("share")
    present_rank = _SHARE_RANKS.get(present, 1) if isinstance(present, str) else 1
    return value if isinstance(value, str) and _SHARE_RANKS.get(value, -1) >= present_rank else None


def _filter_profile(value: Any, base: JSON) -> Any:
    present, wanted = parse_profile(base.get("profile", "auto")), parse_profile(value)
    if wanted is None or present is None:
        return value if value == base.get("profile") else None
    return value if wanted == present or wanted in _STRICTER_PROFILES.get(present, ()) else None


def _filter_output(value: Any, base: JSON) -> Any:
    if not is_object(value):
        return None
    smaller = {
        key: value[key]
        for key, default in _OUTPUT_LIMITS.items()
        if _is_count(value.get(key))
        and value[key] <= _read_count(base, "tool_output", key, default=default)
    }
    return smaller or None


def _filter_sandbox(value: Any, base: JSON) -> Any:
    """Keep settings that make the sandbox stricter: a stricter mode or network, fewer hosts,
    more hidden paths.

    Settings that open paths for writing or reading are dropped.
    """
    before = base.get("sandbox")
    present: JSON = before if is_object(before) else {}
    if not is_object(value):
        return None
    stricter: JSON = {}
    for key, ranks in _SANDBOX_RANKS.items():
        choice, present_choice = value.get(key), present.get(key, next(iter(ranks)))
        if isinstance(choice, str) and ranks.get(choice, -1) >= ranks.get(present_choice, 0):
            stricter[key] = choice
    if value.get("extensions") is True:
        stricter["extensions"] = True
    if value.get("ports") is False:
        stricter["ports"] = False
    present_hosts, hosts = present.get("hosts", []), value.get("hosts")
    if is_list(hosts):
        # A project may remove hosts, and add none.
        stricter["hosts"] = [
            host for host in hosts if is_list(present_hosts) and host in present_hosts
        ]
    present_hidden, hidden = present.get("hidden", []), value.get("hidden")
    if is_list(hidden) and is_list(present_hidden):
        added = (path for path in hidden if isinstance(path, str) and path not in present_hidden)
        stricter["hidden"] = [*present_hidden, *added]
    return stricter or None


def _read_count(base: Any, *keys: str, default: int) -> int:
    """Return the count in `base` at a path of keys; the default if there is none."""
    for key in keys:
        base = base.get(key) if is_object(base) else None
    return base if _is_count(base) else default


def _is_count(value: Any) -> bool:
    # `isinstance` would accept True and False, which are of a subtype of `int`.
    return type(value) is int and value > 0


# A filter gets the value and the settings before it, and returns what is kept of the value; None:
# nothing. Settings without a filter are ignored.
# `compaction` is kept whole, since it permits nothing.
_FILTERS: dict[str, Callable[[Any, JSON], Any]] = {
    "instructions": _filter_instructions,
    "model": _make_model_filter("model"),
    "small_model": _make_model_filter("small_model"),
    "disabled_providers": _filter_disabled,
    "enabled_providers": _filter_enabled,
    "provider": _filter_providers,
    "mcp": _filter_servers,
    "formatter": lambda value, _base: False if value is False else None,
    "lsp": lambda value, _base: False if value is False else None,
    "profile": _filter_profile,
    "share": _filter_share,
    "tool_output": _filter_output,
    "sandbox": _filter_sandbox,
    "compaction": lambda value, _base: value,
    "snapshot": lambda value, _base: True if value is True else None,
}
