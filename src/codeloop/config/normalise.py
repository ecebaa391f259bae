"""Normalises the accepted forms of configuration files to the form of `schema.config`."""

from collections.abc import Iterator
from typing import Any, NoReturn

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.config.known_keys import settings
from codeloop.config.sources import Layer, format_keys
from codeloop.kit.jsonc import Keys, is_object
from codeloop.schema.config import AgentConfig, Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

_ACTIONS = ("allow", "ask", "deny")
_EDITS = frozenset(("write", "patch", "multiedit", "apply_patch"))
_RENAMED = {"logLevel": "log_level"}


class Values(Struct, frozen=True):
    """A layer's values in the form of `schema.config`. `written` says of keys that moved where they were written."""

    layer: Layer
    values: JSON
    written: dict[Keys, Keys] = struct_field(default_factory=dict[Keys, Keys])

    def origin(self, keys: Keys) -> Keys:
        """Return the keys of a value as they were written."""
        for size in range(len(keys), 0, -1):
            if keys[:size] in self.written:
                return (*self.written[keys[:size]], *keys[size:])
        return keys


def normalise(layer: Layer, raw: JSON) -> Values:
    """Turn a layer's (substituted) object into the one form; unknown keys are left out.

    Raises CodeloopError with file, line and column where a permission, an agent or `tools` has no form that we know.
    """
    known = settings(Config)
    found = Values(layer, {})
    for key, value in raw.items():
        name = _RENAMED.get(key, key)
        if name in known and name not in {"permission", "agent"}:
            found.values[name] = value
            if name != key:
                found.written[name,] = (key,)
    if isinstance(mode := raw.get("sandbox"), str):
        found.values["sandbox"] = {"mode": mode}
        found.written["sandbox", "mode"] = ("sandbox",)
    if raw.get("autoshare") is True and "share" not in raw:
        found.values["share"] = "auto"
        found.written["share",] = ("autoshare",)
    _permission(found, found.values, raw, (), ())
    for section in ("mode", "agent"):
        for name, value in _object(found, raw.get(section), (section,)).items():
            _agent(found, name, _object(found, value, (section, name)), (section, name))
    return found


def _agent(found: Values, name: str, raw: JSON, written: Keys) -> None:
    """Add one agent; what it sets beyond the known keys are options of its model."""
    agents: JSON = found.values.setdefault("agent", {})
    agent: JSON = agents.setdefault(name, {"mode": "primary"} if written[0] == "mode" else {})
    keys = ("agent", name)
    found.written.setdefault(keys, written)
    known = settings(AgentConfig)
    options = dict(_object(found, raw.get("options"), (*written, "options")))
    for key, value in raw.items():
        target = "steps" if key == "maxSteps" and "steps" not in raw else key
        if target in known and target not in {"permission", "options"}:
            agent[target] = value
            found.written[*keys, target] = (*written, key)
        elif target not in {"permission", "options", "tools", "maxSteps"}:
            options[key] = value
            found.written[*keys, "options", key] = (*written, key)
    if options:
        agent["options"] = {**agent.get("options", {}), **options}
    _permission(found, agent, raw, written, keys)


def _permission(found: Values, section: JSON, raw: JSON, written: Keys, keys: Keys) -> None:
    """Append the rules of a section's `tools` and then of its `permission` to what it has."""
    rules: list[JSON] = list(section.get("permission", ()))
    for rule, place in (*_tools(found, raw, written), *_rules(found, raw, written)):
        found.written[*keys, "permission", len(rules)] = place
        rules.append(rule)
    if rules:
        section["permission"] = rules


def _tools(found: Values, raw: JSON, written: Keys) -> Iterator[tuple[JSON, Keys]]:
    """Read the old form `{"bash": false}`."""
    place = (*written, "tools")
    for name, is_on in _object(found, raw.get("tools"), place).items():
        if not isinstance(is_on, bool):
            _fail(found, (*place, name), "expected true or false", is_on)
        permission = "edit" if name in _EDITS else name
        yield _rule(permission, "*", "allow" if is_on else "deny"), (*place, name)


def _rules(found: Values, raw: JSON, written: Keys) -> Iterator[tuple[JSON, Keys]]:
    """Read `"ask"`, `{"bash": "ask"}` and `{"bash": {"git *": "allow"}}`."""
    place = (*written, "permission")
    value = raw.get("permission")
    if value is None:
        return
    if not is_object(value):
        yield _rule("*", "*", _action(found, place, value)), place
        return
    for permission, inner in value.items():
        at = (*place, permission)
        if not is_object(inner):
            yield _rule(permission, "*", _action(found, at, inner)), at
            continue
        for pattern, action in inner.items():
            if is_object(action):
                _fail(found, (*at, pattern), 'expected "allow", "ask" or "deny"', action)
            yield _rule(permission, pattern, _action(found, (*at, pattern), action)), (*at, pattern)


def _rule(permission: str, pattern: str, action: str) -> JSON:
    return {"permission": permission, "pattern": pattern, "action": action}


def _action(found: Values, keys: Keys, value: Any) -> str:
    if value not in _ACTIONS:
        _fail(found, keys, 'expected "allow", "ask" or "deny", or an object of them', value)
    return value


def _object(found: Values, value: Any, keys: Keys) -> JSON:
    if value is None:
        return {}
    if not is_object(value):
        _fail(found, keys, "expected an object", value)
    return value


def _fail(found: Values, keys: Keys, expected: str, value: Any) -> NoReturn:
    shown = ascii(value) if isinstance(value, str) else describe(value)
    raise CodeloopError(f"{found.layer.place(keys)}: {format_keys(keys)}: {expected}, got {shown[:60]}.")


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
