"""Converts the object of a configuration file, which may use older or shorter forms,
to the form of `schema.config`.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.config.forms.claude_rules import (
    convert_pattern,
    is_settings_form,
    read_settings_rules,
    split_rule,
)
from codeloop.config.forms.version_two import (
    check_plugins,
    flatten_servers,
    read_disabled_models,
    read_policies,
    read_provider_policies,
    read_rule_list,
)
from codeloop.config.known_keys import list_settings
from codeloop.config.sources import Layer, format_keys
from codeloop.kit.jsonc import KeyPath, get_type_name, is_list, is_object
from codeloop.schema.config import AgentConfig, Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.permission import PERMISSIONS_OF_VERSION_TWO
from codeloop.schema.wire import JSON

_ACTIONS = ("allow", "ask", "deny")
_EDIT_TOOLS = frozenset(("write", "patch", "multiedit", "apply_patch"))
"""Tools that ask for the permission `edit`."""
_RULE_KEYS = frozenset(("permission", "permissions", "tools"))
_AGENT_ALIASES = {"maxSteps": "steps", "disabled": "disable", "system": "prompt"}
_KEY_ALIASES = {"logLevel": "log_level"}


class NormalisedValues(Struct, frozen=True):
    """The values of a layer in the form of `schema.config`.

    `source_keys`: for values that were moved, their path of keys in the file,
    by their path in `values`.
    """

    layer: Layer
    values: JSON
    source_keys: dict[KeyPath, KeyPath] = struct_field(default_factory=dict[KeyPath, KeyPath])

    def find_source_keys(self, keys: KeyPath) -> KeyPath:
        """Return the path of a value in its file."""
        # A value moves along with the object around it,
        # so the longest known start of its path decides.
        for size in range(len(keys), 0, -1):
            if keys[:size] in self.source_keys:
                return (*self.source_keys[keys[:size]], *keys[size:])
        return keys


def normalise_layer(layer: Layer, raw: JSON) -> NormalisedValues:
    """Convert the object of a layer; unknown keys are dropped.
    `raw`: its references are already replaced.

    Raises CodeloopError, with file, line and column, if a permission,
    an agent or `tools` has an unknown form.
    """
    known_keys = list_settings(Config)
    values = NormalisedValues(layer, {})
    for key, value in raw.items():
        name = _KEY_ALIASES.get(key, key)
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
    check_plugins(layer, raw)
    _add_providers(values, raw)
    if is_object(mcp := values.values.get("mcp")) and (servers := flatten_servers(mcp)) is not None:
        values.values["mcp"], paths = servers
        values.source_keys.update({("mcp", name): path for name, path in paths.items()})
    _add_rules(values, values.values, raw, (), ())
    # `mode` is the older name of `agent`, which therefore takes precedence;
    # `agents` is that of OpenCode 2.
    for section in ("mode", "agent", "agents"):
        for name, value in _check_object(values, raw.get(section), (section,)).items():
            _add_agent(values, name, _check_object(values, value, (section, name)), (section, name))
    return values


def _add_agent(values: NormalisedValues, name: str, raw: JSON, prefix_keys: KeyPath) -> None:
    """Add one agent; its unknown keys become options of its model."""
    agents: JSON = values.values.setdefault("agent", {})
    agent: JSON = agents.setdefault(name, {"mode": "primary"} if prefix_keys[0] == "mode" else {})
    keys = ("agent", name)
    values.source_keys.setdefault(keys, prefix_keys)
    known_keys = list_settings(AgentConfig)
    options = dict(_check_object(values, raw.get("options"), (*prefix_keys, "options")))
    for key, value in raw.items():
        target = (
            _AGENT_ALIASES[key] if key in _AGENT_ALIASES and _AGENT_ALIASES[key] not in raw else key
        )
        if target in known_keys and target not in {"permission", "options"}:
            agent[target] = value
            values.source_keys[*keys, target] = (*prefix_keys, key)
        elif target not in _AGENT_ALIASES and target not in _RULE_KEYS and target != "options":
            options[key] = value
            values.source_keys[*keys, "options", key] = (*prefix_keys, key)
    if options:
        agent["options"] = {**agent.get("options", {}), **options}
    _add_rules(values, agent, raw, prefix_keys, keys)


def _add_rules(
    values: NormalisedValues, section: JSON, raw: JSON, prefix_keys: KeyPath, keys: KeyPath
) -> None:
    """Append the rules of `tools`, then those of `permission` and `permissions`,
    to the rules of a section.
    """
    rules: list[JSON] = list(section.get("permission", ()))
    # The last matching rule wins, so `permission` takes precedence over the older form `tools`.
    for rule, path in (
        *_read_tools(values, raw, prefix_keys),
        *_read_permission(values, raw, (*prefix_keys, "permission")),
        *_read_permissions(values, raw, prefix_keys),
    ):
        values.source_keys[*keys, "permission", len(rules)] = path
        rules.append(rule)
    if rules:
        section["permission"] = rules


def _read_tools(
    values: NormalisedValues, raw: JSON, keys: KeyPath
) -> Iterator[tuple[JSON, KeyPath]]:
    """Yield the rules of `tools`, the old form `{"bash": false}`,
    each with its path in the file.
    """
    path = (*keys, "tools")
    for name, is_on in _check_object(values, raw.get("tools"), path).items():
        if not isinstance(is_on, bool):
            _fail(values, (*path, name), "expected true or false", is_on)
        permission = "edit" if name in _EDIT_TOOLS else name
        yield _make_rule(permission, "*", "allow" if is_on else "deny"), (*path, name)


def _read_permissions(
    values: NormalisedValues, raw: JSON, keys: KeyPath
) -> Iterator[tuple[JSON, KeyPath]]:
    """Yield the rules of other programs' keys: `permissions` of OpenCode 2 or Claude Code,
    `policies`, `websearch`.
    """
    path: KeyPath = (*keys, "permissions")
    value: Any = raw.get("permissions")
    if is_list(value):
        yield from read_rule_list(values.layer, value, path)
    elif is_settings_form(value):
        yield from ((rule, (*path, *inner)) for rule, inner in read_settings_rules(value))
    else:
        # As `permission`, under a name that is easily mistaken for it.
        yield from _read_permission(values, raw, path)
    if not keys:
        for action, resource, effect, policy_path in read_policies(values.layer, raw):
            if action == "tool.use":
                yield (
                    _make_rule(PERMISSIONS_OF_VERSION_TWO.get(resource, resource), "*", effect),
                    policy_path,
                )
        if raw.get("websearch") is False:
            yield _make_rule("websearch", "*", "deny"), ("websearch",)


def _add_providers(values: NormalisedValues, raw: JSON) -> None:
    """Add the providers and models that OpenCode 2's keys switch off."""
    for key, names in read_provider_policies(values.layer, raw).items():
        present = values.values.get(key)
        if not is_list(present):
            values.values[key] = names
        elif key == "disabled_providers":
            values.values[key] = [*present, *names]
        else:
            values.values[key] = [name for name in present if name in names]
    for provider, models in read_disabled_models(raw).items():
        entry: JSON = values.values.setdefault("provider", {}).setdefault(provider, {})
        entry["blacklist"] = [*entry.get("blacklist", []), *models]


def _read_permission(
    values: NormalisedValues, raw: JSON, path: KeyPath
) -> Iterator[tuple[JSON, KeyPath]]:
    """Yield the rules of `permission`, each with its path in the file. `path`: that of the key.

    The forms are `"ask"`, `{"bash": "ask"}` and `{"bash": {"git *": "allow"}}`.
    """
    value = raw.get(str(path[-1]))
    if value is None:
        return
    if not is_object(value):
        yield _make_rule("*", "*", _check_action(values, path, value)), path
        return
    for permission, inner in value.items():
        permission_path = (*path, permission)
        if not is_object(inner):
            yield (
                _make_rule(permission, "*", _check_action(values, permission_path, inner)),
                permission_path,
            )
            continue
        for pattern, action in inner.items():
            rule_path = (*permission_path, pattern)
            if is_object(action):
                _fail(values, rule_path, 'expected "allow", "ask" or "deny"', action)
            yield (
                _make_rule(permission, pattern, _check_action(values, rule_path, action)),
                rule_path,
            )


def _make_rule(permission: str, pattern: str, action: str) -> JSON:
    if pattern == "*" and permission.endswith(")"):
        # `"Bash(rm *)": "deny"`
        permission, inner = split_rule(permission)
        pattern = convert_pattern(inner) or "*"
    return {"permission": permission, "pattern": pattern, "action": action}


def _check_action(values: NormalisedValues, keys: KeyPath, value: Any) -> str:
    if value not in _ACTIONS:
        _fail(values, keys, 'expected "allow", "ask" or "deny", or an object of them', value)
    return value


def _check_object(values: NormalisedValues, value: Any, keys: KeyPath) -> JSON:
    if value is None:
        return {}
    if not is_object(value):
        _fail(values, keys, "expected an object", value)
    return value


def _fail(values: NormalisedValues, keys: KeyPath, expected: str, value: Any) -> NoReturn:
    text = ascii(value) if isinstance(value, str) else get_type_name(value)
    raise CodeloopError(
        f"{values.layer.format_location(keys)}: {format_keys(keys)}: {expected}, got {text[:60]}."
    )
