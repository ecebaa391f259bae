"""Redacts the configuration for clients: the form of a configuration file, without secrets.

A secret is omitted with its key, so that a client that sends back what it read removes nothing.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from codeloop.config.load import Loaded
from codeloop.config.sources import Origin, format_keys
from codeloop.kit.jsonc import Keys, is_list, is_object, iterate_texts
from codeloop.schema.wire import JSON

_SECRET = re.compile(r"key|token|secret|passw|auth|credential|cookie|bearer|private", re.IGNORECASE)
_SECRET_GROUPS = frozenset(("headers", "environment", "env"))
_ADDRESSES = frozenset(("baseURL", "enterpriseUrl"))
_REFERENCE = re.compile(r"\{(env|file):")
_USER = re.compile(r"(?<=://)[^/?#@]*@")
_USER_IN_TEXT = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_MASK = "***"
_SHORTEST_SECRET = 12
"""Characters; a shorter text may occur elsewhere by chance."""
_FREE_SECTIONS = frozenset(
    ("provider", "agent", "command", "mcp", "lsp", "formatter", "plugin", "skills", "experimental", "instructions")
)
"""Sections whose texts may be anything; the texts of others, and those of `_CHOICES`, are never masked."""
_CHOICES = frozenset(("model", "agent", "mode", "variant", "color", "npm", "name"))
_LARGEST = 1 << 53
_LEVELS = frozenset(("DEBUG", "INFO", "WARN", "ERROR"))
_OWN_KEYS = ("profile", "sandbox", "mcp_share", "lsp_warnings", "hook_timeout")
_MCP_KEYS = ("type", "enabled", "timeout", "cwd")


def redact_config(loaded: Loaded, username: str) -> JSON:
    """Return the merged configuration; `username` where none is configured.

    `{env:..}` and `{file:..}` are not replaced. Restrictions of untrusted projects are omitted: they are among the
    rules of each agent.
    """
    secrets: set[str] = set()
    values = msgspec.to_builtins(loaded.config)
    data = _sections(values, secrets)
    origins = {path: origin for path, origin in loaded.provenance.items() if _refers(origin)}
    if origins:
        free = {
            key: _restore_references(value, (key,), origins) for key, value in values.items() if key in _FREE_SECTIONS
        }
        data = _sections({**values, **free}, secrets)
    texts = sorted((text for text in secrets if len(text) >= _SHORTEST_SECRET), key=len, reverse=True)
    result = {key: _remove_texts(value, texts if key in _FREE_SECTIONS else []) for key, value in data.items()}
    return {"username": username, **result, "mode": {}, "plugin": result.get("plugin", [])}


def redact_full_config(loaded: Loaded, username: str) -> JSON:
    """Return the configuration as `redact_config` does, plus the settings that only codeloop has."""
    values = msgspec.to_builtins(loaded.config)
    own = {key: value for key in _OWN_KEYS if (value := values.get(key)) is not None}
    return {**redact_config(loaded, username), **own}


def mask_secrets(value: Any, name: str = "") -> Any:
    """Mask the texts in JSON values whose key, or whose group's key, looks like that of a secret."""
    if is_object(value):
        return {key: mask_secrets(inner, "secret" if name in _SECRET_GROUPS else key) for key, inner in value.items()}
    if is_list(value):
        return [mask_secrets(inner, name) for inner in value]
    if not isinstance(value, str):
        return value
    return _MASK if value and _SECRET.search(name) else _without_secrets(value)


def _without_secrets(text: str) -> str:
    """Mask users, queries and fragments in the URLs of a text; the names of query fields stay."""
    if "://" not in text:
        return text
    return re.sub(r"\S+", lambda word: _open_url(word[0]) if "://" in word[0] else word[0], text)


def _open_url(url: str) -> str:
    start, *rest = re.split(r"([?#&])", url)
    secrets = (piece if piece in {"?", "#", "&", ""} else _open_pair(piece) for piece in rest)
    return _USER_IN_TEXT.sub(_MASK, start) + "".join(secrets)


def _open_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={_MASK}" if equals else _MASK


def redact_options(options: JSON) -> JSON:
    """Return a provider's options: addresses, numbers and switches; other texts may be keys."""
    return _provider_options(options, set())


def redact_settings(options: JSON) -> JSON:
    """Return a model's options, without those that are secrets by their names."""
    return _options(options, set())


def redact_address(url: str) -> str:
    """Return an address without user, query and fragment."""
    return _address(url, set())


def _sections(values: JSON, secrets: set[str]) -> JSON:
    sections = {key: _REDACTORS[key](value, secrets) for key, value in values.items() if key in _REDACTORS}
    level = str(values.get("log_level", "")).upper()
    if level in _LEVELS:
        sections["logLevel"] = level
    if "permission" in values:
        sections["permission"] = permission_form(values["permission"])
    search = values.get("search", {})
    secrets.update(_texts(search.get("apiKey")))
    return {key: value for key, value in sections.items() if value not in (None, {})}


def permission_form(rules: list[JSON]) -> JSON:
    """Return rules as a configuration file has them: `{"bash": {"git *": "allow"}, "edit": "deny"}`.

    Rules that a later one overrides completely are omitted. All rules of one permission are put where its first one
    is, since a file can hold each permission only once.
    """
    form: dict[str, JSON] = {}
    for rule in _drop_overridden(rules):
        form.setdefault(rule["permission"], {})[rule["pattern"]] = rule["action"]
    return {name: each["*"] if each.keys() == {"*"} else each for name, each in form.items()}


def _drop_overridden(rules: list[JSON]) -> list[JSON]:
    later: set[tuple[str, str]] = set()
    effective_rules: list[JSON] = []
    for rule in reversed(rules):
        permission, pattern = rule["permission"], rule["pattern"]
        if not later & {("*", "*"), (permission, "*"), ("*", pattern), (permission, pattern)}:
            effective_rules.append(rule)
        later.add((permission, pattern))
    return effective_rules[::-1]


def _as_is(value: Any, _hidden: set[str]) -> Any:
    return value


def _agents(agents: JSON, secrets: set[str]) -> JSON:
    return {name: each for name, agent in agents.items() if (each := _agent(agent, secrets))}


def _agent(agent: JSON, secrets: set[str]) -> JSON:
    visible = {key: value for key, value in agent.items() if key not in {"permission", "restrictions", "options"}}
    if "permission" in agent:
        visible["permission"] = permission_form(agent["permission"])
    if "options" in agent:
        visible["options"] = _options(agent["options"], secrets)
    return visible


def _providers(providers: JSON, secrets: set[str]) -> JSON:
    return {name: _provider(provider, secrets) for name, provider in providers.items()}


def _provider(provider: JSON, secrets: set[str]) -> JSON:
    visible = dict(provider)
    if "api" in visible:
        visible["api"] = _address(visible["api"], secrets)
    if "options" in visible:
        visible["options"] = _provider_options(visible["options"], secrets)
    if "models" in visible:
        visible["models"] = {name: _model(model, secrets) for name, model in visible["models"].items()}
    return visible


def _provider_options(options: JSON, secrets: set[str]) -> JSON:
    data: JSON = {}
    for key, value in options.items():
        if key in _ADDRESSES and isinstance(value, str):
            data[key] = _address(value, secrets)
        elif value is None or isinstance(value, bool | int | float):
            data[key] = value
        elif key in _SECRET_GROUPS or _SECRET.search(key):
            secrets.update(_texts(value))
    return data


def _model(model: JSON, secrets: set[str]) -> JSON:
    """Return a model; its limits and prices only if they have both fields that clients require."""
    secrets.update(_texts(model.get("headers")))
    visible = {key: value for key, value in model.items() if key not in {"headers", "disabled", "options"}}
    if "options" in model:
        visible["options"] = _options(model["options"], secrets)
    if "variants" in model:
        visible["variants"] = {name: _options(options, secrets) for name, options in model["variants"].items()}
    for key, required in (("cost", {"input", "output"}), ("limit", {"context", "output"})):
        if key in visible and not required <= visible[key].keys():
            del visible[key]
    return visible


def _servers(servers: JSON, secrets: set[str]) -> JSON:
    return {name: _server(server, secrets) for name, server in servers.items()}


def _server(server: JSON, secrets: set[str]) -> JSON:
    """Return an MCP server: of its command the program only, since arguments hold keys as often as variables do."""
    visible = {key: server[key] for key in _MCP_KEYS if key in server}
    if is_list(server.get("command")):
        visible["command"] = server["command"][:1]
    if isinstance(server.get("url"), str):
        visible["url"] = _address(server["url"], secrets)
    for key in ("environment", "headers", "oauth"):
        secrets.update(_texts(server.get(key)))
    return visible


def _tools(value: Any, secrets: set[str]) -> Any:
    """Return language servers or formatters: a switch, or by name."""
    return {name: _options(each, secrets) for name, each in value.items()} if is_object(value) else value


def _plugins(plugins: list[Any], secrets: set[str]) -> list[Any]:
    return [_options(_address(each, secrets) if isinstance(each, str) else each, secrets) for each in plugins]


def _skills(skills: JSON, secrets: set[str]) -> JSON:
    visible = _options(skills, secrets)
    if is_list(visible.get("urls")):
        visible["urls"] = [_address(str(url), secrets) for url in visible["urls"]]
    return visible


def _options(value: Any, secrets: set[str]) -> Any:
    """Return settings that other programs define, without those whose keys look like secrets."""
    if is_list(value):
        return [_options(each, secrets) for each in value]
    if not is_object(value):
        return value
    data: JSON = {}
    for key, each in value.items():
        if (key in _SECRET_GROUPS or _SECRET.search(key)) and not isinstance(each, bool | int | float | None):
            secrets.update(_texts(each))
        else:
            data[key] = _options(each, secrets)
    return data


def _address(url: str, secrets: set[str]) -> str:
    if "://" not in url:
        return url
    plain = re.split(r"[?#]", _USER.sub("", url), maxsplit=1)[0]
    if plain != url:
        secrets.update(re.split(r"[:@?&=#]", " ".join((*_USER.findall(url), url.partition("?")[2]))))
    return plain


def _texts(value: Any) -> list[str]:
    """Return every text inside a value, and its words."""
    return [part for text in iterate_texts(value) for part in (text, *text.split())]


def _remove_texts(value: Any, texts: list[str]) -> Any:
    """Return a value without these texts, and without integers too large for JSON readers."""
    if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
        return _LARGEST if value > 0 else -_LARGEST
    if isinstance(value, str):
        for text in texts:
            value = value.replace(text, _MASK)
        return value
    if is_object(value):
        return {key: _remove_texts(each, texts) for key, each in value.items()}
    return [_remove_texts(each, texts) for each in value] if is_list(value) else value


def _refers(origin: Origin) -> bool:
    text = origin.layer.document.text
    if "{env:" not in text and "{file:" not in text:
        return False
    return any(_REFERENCE.search(each) for each in _texts(origin.raw))


def _restore_references(value: Any, keys: Keys, origins: dict[str, Origin]) -> Any:
    """Replace values that came from variables and files by their references; rules and choices stay."""
    if len(keys) == 3 and (keys[-1] in _CHOICES or (keys[0] == "agent" and keys[-1] in {"permission", "restrictions"})):
        return value
    origin = origins.get(format_keys(keys))
    if origin is not None:
        return origin.raw
    if is_object(value):
        return {key: _restore_references(each, (*keys, key), origins) for key, each in value.items()}
    if is_list(value):
        return [_restore_references(each, (*keys, index), origins) for index, each in enumerate(value)]
    return value


_REDACTORS: dict[str, Callable[[Any, set[str]], Any]] = {
    **dict.fromkeys(
        (
            *("model", "small_model", "fallback", "default_agent", "username", "shell", "share"),
            *("snapshot", "autoupdate"),
            *("instructions", "enabled_providers", "disabled_providers", "command", "watcher", "server"),
            *("compaction", "tool_output", "budget", "subagents"),
        ),
        _as_is,
    ),
    "provider": _providers,
    "agent": _agents,
    "mcp": _servers,
    "plugin": _plugins,
    "lsp": _tools,
    "formatter": _tools,
    "skills": _skills,
    "experimental": _options,
}
