"""Converts the accepted forms of configuration files to the one form of `schema.config`."""

from collections.abc import Iterator
from typing import Any, NoReturn

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.config.known_keys import list_settings
from codeloop.config.sources import Layer, format_keys
from codeloop.kit.jsonc import Keys, is_object
from codeloop.schema.config import AgentConfig, Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

_ACTIONS = ("allow", "ask", "deny")
_EDITS = frozenset(("write", "patch", "multiedit", "apply_patch"))
_OTHER_NAMES = {"logLevel": "log_level"}


class Values(Struct, frozen=True):
    """A layer's values in the form of `schema.config`. `source_keys`: where moved keys were."""

    layer: Layer
    values: JSON
    source_keys: dict[Keys, Keys] = struct_field(default_factory=dict[Keys, Keys])

    def origin(self, keys: Keys) -> Keys:
        """Return the keys of a value in its file."""
        for size in range(len(keys), 0, -1):
            if keys[:size] in self.source_keys:
                return (*self.source_keys[keys[:size]], *keys[size:])
        return keys


def normalise(layer: Layer, raw: JSON) -> Values:
    """Convert a layer's (substituted) object; unknown keys are dropped.

    Raises CodeloopError with file, line and column where a permission, an agent or `tools` has an unknown form.
    """
    known_keys = list_settings(Config)
    values = Values(layer, {})
    for key, value in raw.items():
        name = _OTHER_NAMES.get(key, key)
        if name in known_keys and name not in {"permission", "agent"}:
            values.values[name] = value
            if name != key:
                values.source_keys[name,] = (key,)
    if isinstance(mode := raw.get("sandbox"), str):
        values.values["sandbox"] = {"mode": mode}
        values.source_keys["sandbox", "mode"] = ("sandbox",)
    if raw.get("autoshare") is True and "share" not in raw:
        values.values["share"] = "auto"
        values.source_keys["share",] = ("autoshare",)
    _permission(values, values.values, raw, (), ())
    for section in ("mode", "agent"):
        for name, value in _object(values, raw.get(section), (section,)).items():
            _agent(values, name, _object(values, value, (section, name)), (section, name))
    return values


def _agent(values: Values, name: str, raw: JSON, prefix_keys: Keys) -> None:
    """Add one agent; what it sets beyond the known keys are options of its model."""
    agents: JSON = values.values.setdefault("agent", {})
    agent: JSON = agents.setdefault(name, {"mode": "primary"} if prefix_keys[0] == "mode" else {})
    keys = ("agent", name)
    values.source_keys.setdefault(keys, prefix_keys)
    known_keys = list_settings(AgentConfig)
    options = dict(_object(values, raw.get("options"), (*prefix_keys, "options")))
    for key, value in raw.items():
        target = "steps" if key == "maxSteps" and "steps" not in raw else key
        if target in known_keys and target not in {"permission", "options"}:
            agent[target] = value
            values.source_keys[*keys, target] = (*prefix_keys, key)
        elif target not in {"permission", "options", "tools", "maxSteps"}:
            options[key] = value
            values.source_keys[*keys, "options", key] = (*prefix_keys, key)
    if options:
        agent["options"] = {**agent.get("options", {}), **options}
    _permission(values, agent, raw, prefix_keys, keys)


def _permission(values: Values, section: JSON, raw: JSON, prefix_keys: Keys, keys: Keys) -> None:
    """Append the rules of a section's `tools` and then of its `permission` to what it has."""
    rules: list[JSON] = list(section.get("permission", ()))
    for rule, path in (*_tools(values, raw, prefix_keys), *_rules(values, raw, prefix_keys)):
        values.source_keys[*keys, "permission", len(rules)] = path
        rules.append(rule)
    if rules:
        section["permission"] = rules


def _tools(values: Values, raw: JSON, keys: Keys) -> Iterator[tuple[JSON, Keys]]:
    """Read the old form `{"bash": false}`."""
    path = (*keys, "tools")
    for name, is_on in _object(values, raw.get("tools"), path).items():
        if not isinstance(is_on, bool):
            _fail(values, (*path, name), "expected true or false", is_on)
        permission = "edit" if name in _EDITS else name
        yield _rule(permission, "*", "allow" if is_on else "deny"), (*path, name)


def _rules(values: Values, raw: JSON, keys: Keys) -> Iterator[tuple[JSON, Keys]]:
    """Read `"ask"`, `{"bash": "ask"}` and `{"bash": {"git *": "allow"}}`."""
    path = (*keys, "permission")
    value = raw.get("permission")
    if value is None:
        return
    if not is_object(value):
        yield _rule("*", "*", _action(values, path, value)), path
        return
    for permission, inner in value.items():
        at = (*path, permission)
        if not is_object(inner):
            yield _rule(permission, "*", _action(values, at, inner)), at
            continue
        for pattern, action in inner.items():
            if is_object(action):
                _fail(values, (*at, pattern), 'expected "allow", "ask" or "deny"', action)
            yield _rule(permission, pattern, _action(values, (*at, pattern), action)), (*at, pattern)


def _rule(permission: str, pattern: str, action: str) -> JSON:
    return {"permission": permission, "pattern": pattern, "action": action}


def _action(values: Values, keys: Keys, value: Any) -> str:
    if value not in _ACTIONS:
        _fail(values, keys, 'expected "allow", "ask" or "deny", or an object of them', value)
    return value


def _object(values: Values, value: Any, keys: Keys) -> JSON:
    if value is None:
        return {}
    if not is_object(value):
        _fail(values, keys, "expected an object", value)
    return value


def _fail(values: Values, keys: Keys, expected: str, value: Any) -> NoReturn:
    text = ascii(value) if isinstance(value, str) else describe(value)
    raise CodeloopError(f"{values.layer.place(keys)}: {format_keys(keys)}: {expected}, got {text[:60]}.")


def describe(value: Any) -> str:
    """Name the kind of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "list"
        case _:
            return "object"
