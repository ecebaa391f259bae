"""Reads what restricts in the native shape of OpenCode 2: lists of rules, policies,
and what is disabled.

The other keys of that shape are reported as unknown; one that restricts is read,
or refused where we can't express it.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from codeloop.config.sources import Layer, format_keys
from codeloop.kit.jsonc import KeyPath, get_type_name, is_list, is_object
from codeloop.schema.errors import CodeloopError
from codeloop.schema.permission import PERMISSIONS_OF_VERSION_TWO
from codeloop.schema.wire import JSON

_EFFECTS = ("allow", "ask", "deny")
_SERVER_KEYS = frozenset(("type", "command", "url", "enabled"))
"""Keys of one MCP server: an entry named `servers` that has one is not a list of servers."""
RuleAt = tuple[JSON, KeyPath]
"""A rule in the form of `schema.config`, and its path in the file."""


def read_rule_list(layer: Layer, rules: list[Any], path: KeyPath) -> Iterator[RuleAt]:
    """Yield the rules of `permissions`: objects with `action`, `resource` and `effect`.
    Raises CodeloopError.
    """
    for index, item in enumerate(rules):
        action, resource, effect = _read_item(layer, item, (*path, index))
        permission = PERMISSIONS_OF_VERSION_TWO.get(action, action)
        yield {"permission": permission, "pattern": resource, "action": effect}, (*path, index)


def read_policies(layer: Layer, raw: JSON) -> Iterator[tuple[str, str, str, KeyPath]]:
    """Yield the action, resource, effect and path of each policy.
    Raises CodeloopError for what we can't express.
    """
    experimental = raw.get("experimental")
    sections = (
        (raw, ("policies",)),
        (experimental if is_object(experimental) else {}, ("experimental", "policies")),
    )
    for section, path in sections:
        policies = section.get("policies")
        if policies is None:
            continue
        if not is_list(policies):
            _fail(layer, path, "expected a list of policies", policies)
        for index, item in enumerate(policies):
            keys = (*path, index)
            action, resource, effect = _read_item(layer, item, keys)
            can_express = action == "tool.use" or (action == "provider.use" and effect != "ask")
            if effect != "allow" and not can_express:
                _refuse(layer, keys, f"a policy that says {effect} to {action} {resource}")
            yield action, resource, effect, keys


def read_provider_policies(layer: Layer, raw: JSON) -> JSON:
    """Return `disabled_providers` and `enabled_providers` as policies and `disabled`
    of providers set them.

    Raises CodeloopError for a denial by a wildcard, which these lists can't express.
    """
    disabled: dict[str, None] = {}
    enabled: dict[str, None] | None = None
    for action, resource, effect, keys in read_policies(layer, raw):
        if action != "provider.use":
            continue
        if effect == "deny" and resource == "*":
            enabled = {}
        elif effect == "deny" and any(char in resource for char in "*?"):
            _refuse(layer, keys, f"a policy that denies the providers {resource}; name each")
        elif effect == "deny":
            disabled[resource] = None
            enabled = (
                None if enabled is None else {name: None for name in enabled if name != resource}
            )
        elif resource == "*":
            disabled, enabled = {}, None
        else:
            disabled.pop(resource, None)
            if enabled is not None:
                enabled[resource] = None
    providers = raw.get("providers")
    for name, entry in providers.items() if is_object(providers) else ():
        if is_object(entry) and (
            entry.get("disabled") is True or entry.get("activation") == "disabled"
        ):
            disabled[name] = None
    return {
        **({"disabled_providers": [*disabled]} if disabled else {}),
        **({"enabled_providers": [*enabled]} if enabled is not None else {}),
    }


def read_disabled_models(raw: JSON) -> dict[str, list[str]]:
    """Return the ids of the disabled models, by their provider."""
    providers = raw.get("providers")
    found: dict[str, list[str]] = {}
    for provider, entry in providers.items() if is_object(providers) else ():
        models = entry.get("models") if is_object(entry) else None
        for model, values in models.items() if is_object(models) else ():
            if is_object(values) and values.get("disabled") is True:
                found.setdefault(provider, []).append(model)
    return found


def flatten_servers(mcp: JSON) -> tuple[JSON, dict[str, KeyPath]] | None:
    """Return the MCP servers of `{"servers": {...}}` by name, and their paths;
    None: `mcp` has another shape.
    """
    servers = mcp.get("servers")
    if not is_object(servers) or _SERVER_KEYS & servers.keys():
        return None
    others = {name: entry for name, entry in mcp.items() if name not in {"servers", "timeout"}}
    own: JSON = {}
    for name, entry in servers.items():
        own[name] = entry
        if is_object(entry) and "disabled" in entry:
            others_of_entry = {key: value for key, value in entry.items() if key != "disabled"}
            own[name] = {**others_of_entry, "enabled": entry["disabled"] is False}
    return {**others, **own}, {name: ("mcp", "servers", name) for name in own}


def check_plugins(layer: Layer, raw: JSON) -> None:
    """Raise CodeloopError if `plugins` switches a plugin off (`-name`): that list is not read."""
    plugins = raw.get("plugins")
    for index, each in enumerate(plugins if is_list(plugins) else ()):
        if isinstance(each, str) and each.startswith("-"):
            _refuse(layer, ("plugins", index), f"{each!a}; remove {each[1:]!a} from `plugin`")


def _read_item(layer: Layer, item: Any, keys: KeyPath) -> tuple[str, str, str]:
    """Return the action, resource and effect of a rule or policy. Raises CodeloopError."""
    if not is_object(item):
        _fail(layer, keys, "expected an object with action, resource and effect", item)
    action, resource, effect = item.get("action"), item.get("resource", "*"), item.get("effect")
    if not isinstance(action, str) or not isinstance(resource, str):
        _fail(layer, keys, "expected texts as action and resource", item)
    if effect not in _EFFECTS:
        _fail(layer, (*keys, "effect"), 'expected "allow", "ask" or "deny"', effect)
    return action, resource, effect


def _refuse(layer: Layer, keys: KeyPath, what: str) -> NoReturn:
    raise CodeloopError(
        f"{layer.format_location(keys)}: {format_keys(keys)}: codeloop can't express {what}. "
        "As it restricts, it is not skipped: remove it, or say the same with `permission`."
    )


def _fail(layer: Layer, keys: KeyPath, expected: str, value: Any) -> NoReturn:
    text = ascii(value) if isinstance(value, str) else get_type_name(value)
    raise CodeloopError(
        f"{layer.format_location(keys)}: {format_keys(keys)}: {expected}, got {text[:60]}."
    )
