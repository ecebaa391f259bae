"""Redacts the configuration for clients: in the form of a configuration file, without secrets.

What is left out is left out whole, so that a client that sends back what it read takes nothing away.
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
_CLOSED = frozenset(("headers", "environment", "env"))
_ADDRESSES = frozenset(("baseURL", "enterpriseUrl"))
_REFERENCE = re.compile(r"\{(env|file):")
_USER = re.compile(r"(?<=://)[^/?#@]*@")
_USER_IN_TEXT = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_MASK = "***"
_SHORTEST_SECRET = 12
"""Characters; a shorter text may stand elsewhere by chance."""
_FREE = frozenset(
    ("provider", "agent", "command", "mcp", "lsp", "formatter", "plugin", "skills", "experimental", "instructions")
)
"""Sections whose texts may be anything; in the others, and under `_CHOICES`, clients count on the values."""
_CHOICES = frozenset(("model", "agent", "mode", "variant", "color", "npm", "name"))
_LARGEST = 1 << 53
_LEVELS = frozenset(("DEBUG", "INFO", "WARN", "ERROR"))
_OWN = ("profile", "sandbox", "mcp_share", "lsp_warnings", "hook_timeout")
_MCP = ("type", "enabled", "timeout", "cwd")


def redact_config(loaded: Loaded, username: str) -> JSON:
    """Return the merged configuration; `username` where none is configured.

    `{env:..}` and `{file:..}` are left as written. Restrictions of untrusted projects are not in it: the rules
    of each agent hold them.
    """
    hidden: set[str] = set()
    values = msgspec.to_builtins(loaded.config)
    data = _sections(values, hidden)
    origins = {path: origin for path, origin in loaded.provenance.items() if _refers(origin)}
    if origins:
        free = {key: _as_written(value, (key,), origins) for key, value in values.items() if key in _FREE}
        data = _sections({**values, **free}, hidden)
    texts = sorted((text for text in hidden if len(text) >= _SHORTEST_SECRET), key=len, reverse=True)
    masked = {key: _remove_texts(value, texts if key in _FREE else []) for key, value in data.items()}
    return {"username": username, **masked, "mode": {}, "plugin": masked.get("plugin", [])}


def redact_whole_config(loaded: Loaded, username: str) -> JSON:
    """Return the configuration as `redact_config` does, with the settings that only codeloop knows."""
    values = msgspec.to_builtins(loaded.config)
    own = {key: value for key in _OWN if (value := values.get(key)) is not None}
    return {**redact_config(loaded, username), **own}


def mask_secrets(value: Any, name: str = "") -> Any:
    """Return JSON values in which texts are masked whose name, or whose group's name, is that of a secret."""
    if is_object(value):
        return {key: mask_secrets(inner, "secret" if name in _CLOSED else key) for key, inner in value.items()}
    if is_list(value):
        return [mask_secrets(inner, name) for inner in value]
    if not isinstance(value, str):
        return value
    return _MASK if value and _SECRET.search(name) else _without_secrets(value)


def _without_secrets(text: str) -> str:
    """Return a text without the users, queries and fragments of the URLs in it; their names stay."""
    if "://" not in text:
        return text
    return re.sub(r"\S+", lambda word: _open_url(word[0]) if "://" in word[0] else word[0], text)


def _open_url(url: str) -> str:
    start, *rest = re.split(r"([?#&])", url)
    hidden = (piece if piece in {"?", "#", "&", ""} else _open_pair(piece) for piece in rest)
    return _USER_IN_TEXT.sub(_MASK, start) + "".join(hidden)


def _open_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={_MASK}" if equals else _MASK


def open_options(options: JSON) -> JSON:
    """Return a provider's options: addresses, numbers and switches; other texts may be keys."""
    return _provider_options(options, set())


def open_settings(options: JSON) -> JSON:
    """Return a model's options, without those that are secrets by their names."""
    return _options(options, set())


def open_address(url: str) -> str:
    """Return an address without user, query and fragment."""
    return _address(url, set())


def _sections(values: JSON, hidden: set[str]) -> JSON:
    sections = {key: _SHOWN[key](value, hidden) for key, value in values.items() if key in _SHOWN}
    level = str(values.get("log_level", "")).upper()
    if level in _LEVELS:
        sections["logLevel"] = level
    if "permission" in values:
        sections["permission"] = permission_form(values["permission"])
    search = values.get("search", {})
    hidden.update(_texts(search.get("apiKey")))
    return {key: value for key, value in sections.items() if value not in (None, {})}


def permission_form(rules: list[JSON]) -> JSON:
    """Return rules as a configuration file has them: `{"bash": {"git *": "allow"}, "edit": "deny"}`.

    Rules that a later one covers wholly are left out. Of rules for one permission with others between them the place
    of the first counts, which a file can't say otherwise.
    """
    form: dict[str, JSON] = {}
    for rule in _drop_covered(rules):
        form.setdefault(rule["permission"], {})[rule["pattern"]] = rule["action"]
    return {name: each["*"] if each.keys() == {"*"} else each for name, each in form.items()}


def _drop_covered(rules: list[JSON]) -> list[JSON]:
    later: set[tuple[str, str]] = set()
    layers_left: list[JSON] = []
    for rule in reversed(rules):
        permission, pattern = rule["permission"], rule["pattern"]
        if not later & {("*", "*"), (permission, "*"), ("*", pattern), (permission, pattern)}:
            layers_left.append(rule)
        later.add((permission, pattern))
    return layers_left[::-1]


def _as_is(value: Any, _hidden: set[str]) -> Any:
    return value


def _agents(agents: JSON, hidden: set[str]) -> JSON:
    return {name: each for name, agent in agents.items() if (each := _agent(agent, hidden))}


def _agent(agent: JSON, hidden: set[str]) -> JSON:
    visible = {key: value for key, value in agent.items() if key not in {"permission", "restrictions", "options"}}
    if "permission" in agent:
        visible["permission"] = permission_form(agent["permission"])
    if "options" in agent:
        visible["options"] = _options(agent["options"], hidden)
    return visible


def _providers(providers: JSON, hidden: set[str]) -> JSON:
    return {name: _provider(provider, hidden) for name, provider in providers.items()}


def _provider(provider: JSON, hidden: set[str]) -> JSON:
    visible = dict(provider)
    if "api" in visible:
        visible["api"] = _address(visible["api"], hidden)
    if "options" in visible:
        visible["options"] = _provider_options(visible["options"], hidden)
    if "models" in visible:
        visible["models"] = {name: _model(model, hidden) for name, model in visible["models"].items()}
    return visible


def _provider_options(options: JSON, hidden: set[str]) -> JSON:
    data: JSON = {}
    for key, value in options.items():
        if key in _ADDRESSES and isinstance(value, str):
            data[key] = _address(value, hidden)
        elif value is None or isinstance(value, bool | int | float):
            data[key] = value
        elif key in _CLOSED or _SECRET.search(key):
            hidden.update(_texts(value))
    return data


def _model(model: JSON, hidden: set[str]) -> JSON:
    """Return a model; of limits and prices only what says both of what clients count on."""
    hidden.update(_texts(model.get("headers")))
    visible = {key: value for key, value in model.items() if key not in {"headers", "disabled", "options"}}
    if "options" in model:
        visible["options"] = _options(model["options"], hidden)
    if "variants" in model:
        visible["variants"] = {name: _options(options, hidden) for name, options in model["variants"].items()}
    for key, required in (("cost", {"input", "output"}), ("limit", {"context", "output"})):
        if key in visible and not required <= visible[key].keys():
            del visible[key]
    return visible


def _servers(servers: JSON, hidden: set[str]) -> JSON:
    return {name: _server(server, hidden) for name, server in servers.items()}


def _server(server: JSON, hidden: set[str]) -> JSON:
    """Return an MCP server: of its command the program only, since arguments hold keys as often as variables do."""
    visible = {key: server[key] for key in _MCP if key in server}
    if is_list(server.get("command")):
        visible["command"] = server["command"][:1]
    if isinstance(server.get("url"), str):
        visible["url"] = _address(server["url"], hidden)
    for key in ("environment", "headers", "oauth"):
        hidden.update(_texts(server.get(key)))
    return visible


def _tools(value: Any, hidden: set[str]) -> Any:
    """Return language servers or formatters: a switch, or by name."""
    return {name: _options(each, hidden) for name, each in value.items()} if is_object(value) else value


def _plugins(plugins: list[Any], hidden: set[str]) -> list[Any]:
    return [_options(_address(each, hidden) if isinstance(each, str) else each, hidden) for each in plugins]


def _skills(skills: JSON, hidden: set[str]) -> JSON:
    visible = _options(skills, hidden)
    if is_list(visible.get("urls")):
        visible["urls"] = [_address(str(url), hidden) for url in visible["urls"]]
    return visible


def _options(value: Any, hidden: set[str]) -> Any:
    """Return settings that belong to somebody else, without what is a secret by its name."""
    if is_list(value):
        return [_options(each, hidden) for each in value]
    if not is_object(value):
        return value
    data: JSON = {}
    for key, each in value.items():
        if (key in _CLOSED or _SECRET.search(key)) and not isinstance(each, bool | int | float | None):
            hidden.update(_texts(each))
        else:
            data[key] = _options(each, hidden)
    return data


def _address(url: str, hidden: set[str]) -> str:
    if "://" not in url:
        return url
    plain = re.split(r"[?#]", _USER.sub("", url), maxsplit=1)[0]
    if plain != url:
        hidden.update(re.split(r"[:@?&=#]", " ".join((*_USER.findall(url), url.partition("?")[2]))))
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


def _as_written(value: Any, keys: Keys, origins: dict[str, Origin]) -> Any:
    """Replace values read from variables and files by their written references; rules and choices stay."""
    if len(keys) == 3 and (keys[-1] in _CHOICES or (keys[0] == "agent" and keys[-1] in {"permission", "restrictions"})):
        return value
    origin = origins.get(format_keys(keys))
    if origin is not None:
        return origin.raw
    if is_object(value):
        return {key: _as_written(each, (*keys, key), origins) for key, each in value.items()}
    if is_list(value):
        return [_as_written(each, (*keys, index), origins) for index, each in enumerate(value)]
    return value


_SHOWN: dict[str, Callable[[Any, set[str]], Any]] = {
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
