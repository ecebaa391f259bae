"""Redacts the configuration for clients, which get it in the form of a configuration file,
without secrets.

A secret is omitted together with its key: a client may send the configuration back, and a masked
value would then replace the secret. `mask_secrets` is for `codeloop debug config`,
which only shows it.

The functions `_redact_...` return what a client may see of a value, and add the texts that they
omit to `secrets`: `redact_config` masks the longer ones within other texts, too.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from codeloop.config.forms.rules_form import convert_rules_to_config
from codeloop.config.load import LoadedConfig
from codeloop.config.sources import Origin, format_keys
from codeloop.kit.jsonc import KeyPath, is_list, is_object, iterate_texts
from codeloop.schema.wire import JSON

_SENSITIVE_NAME = r"(?i)key|token|secret|passw|auth|credential|cookie|bearer|private"
"""Matches the names of keys whose values are taken for secrets."""
_SECRET_GROUP_KEYS = frozenset(("headers", "environment", "env"))
"""Keys of objects whose values are all taken for secrets."""
_ADDRESS_KEYS = frozenset(("baseURL", "enterpriseUrl"))
_REFERENCE_START = r"\{(env|file):"
_URL_USER = r"(?<=://)[^/?#@]*@"
_URL_USER_IN_TEXT = r"(?<=://)[^/@\s]+(?=@)"
_MASK = "***"
# A secret of so many characters is also masked within other texts;
# a shorter one may occur there by chance.
_MIN_SECRET_LENGTH = 12
_MASKED_SECTIONS = frozenset(
    (
        "provider",
        "agent",
        "command",
        "mcp",
        "lsp",
        "formatter",
        "plugin",
        "skills",
        "experimental",
        "instructions",
    )
)
"""Sections in which references are restored, and secrets masked within texts;
the texts of other sections stay.
"""
_CHOICE_KEYS = frozenset(("model", "agent", "mode", "variant", "color", "npm", "name"))
"""Keys of a section's entries (`agent.NAME.model`) whose values clients work with:
references there stay replaced.
"""
# The largest integer that JavaScript reads exactly.
_MAX_INTEGER = 1 << 53
_LOG_LEVELS = frozenset(("DEBUG", "INFO", "WARN", "ERROR"))
_CODELOOP_KEYS = ("profile", "sandbox", "mcp_share", "lsp_warnings", "hook_timeout")
_VISIBLE_MCP_KEYS = ("type", "enabled", "timeout", "cwd")


def redact_config(loaded: LoadedConfig, username: str) -> JSON:
    """Return the merged configuration without secrets; `username` is used if none is configured.

    Values from `{env:..}` and `{file:..}` are returned as these references. The restrictions of
    untrusted projects are omitted: clients get them with the rules of each agent.
    """
    secrets: set[str] = set()
    values = msgspec.to_builtins(loaded.config)
    sections = _redact_sections(values, secrets)
    origins = {path: origin for path, origin in loaded.provenance.items() if _has_reference(origin)}
    if origins:
        restored = {
            key: _restore_references(value, (key,), origins)
            for key, value in values.items()
            if key in _MASKED_SECTIONS
        }
        sections = _redact_sections({**values, **restored}, secrets)
    # Longest first: a secret may contain another one.
    texts = sorted(
        (text for text in secrets if len(text) >= _MIN_SECRET_LENGTH), key=len, reverse=True
    )
    result = {
        key: _mask_texts(value, texts if key in _MASKED_SECTIONS else [])
        for key, value in sections.items()
    }
    return {"username": username, **result, "mode": {}, "plugin": result.get("plugin", [])}


def redact_full_config(loaded: LoadedConfig, username: str) -> JSON:
    """Return the configuration as `redact_config` does,
    with the settings that OpenCode does not have.
    """
    values = msgspec.to_builtins(loaded.config)
    settings = {key: value for key in _CODELOOP_KEYS if (value := values.get(key)) is not None}
    return {**redact_config(loaded, username), **settings}


def mask_secrets(value: Any, name: str = "") -> Any:
    """Return a JSON value with texts masked whose key or group is named like a secret,
    and secrets within URLs.
    """
    if is_object(value):
        return {
            key: mask_secrets(inner, "secret" if name in _SECRET_GROUP_KEYS else key)
            for key, inner in value.items()
        }
    if is_list(value):
        return [mask_secrets(inner, name) for inner in value]
    if not isinstance(value, str):
        return value
    return _MASK if value and re.search(_SENSITIVE_NAME, name) else _mask_urls(value)


def _mask_urls(text: str) -> str:
    """Mask users, query values and fragments in the URLs of a text."""
    if "://" not in text:
        return text
    return re.sub(r"\S+", lambda word: _mask_url(word[0]) if "://" in word[0] else word[0], text)


def _mask_url(url: str) -> str:
    """Mask the secrets of a URL: `https://***@host/path?key=***&v=***#***`."""
    # The separators are kept: `a?b=c` is split into `a`, `?` and `b=c`.
    start, *rest = re.split(r"([?#&])", url)
    secrets = (
        piece if piece in {"?", "#", "&", ""} else _mask_query_value(piece) for piece in rest
    )
    return re.sub(_URL_USER_IN_TEXT, _MASK, start) + "".join(secrets)


def _mask_query_value(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={_MASK}" if equals else _MASK


def redact_provider_options(options: JSON) -> JSON:
    """Return a provider's options without texts that may be keys: only addresses,
    numbers and booleans stay.
    """
    return _redact_provider_options(options, set())


def redact_model_options(options: JSON) -> JSON:
    """Return a model's options, without those named like secrets."""
    return _redact_other_options(options, set())


def redact_address(url: str) -> str:
    """Return an address without user, query and fragment."""
    return _redact_url(url, set())


def _redact_sections(values: JSON, secrets: set[str]) -> JSON:
    sections = {
        key: _REDACTORS[key](value, secrets) for key, value in values.items() if key in _REDACTORS
    }
    level = str(values.get("log_level", "")).upper()
    if level in _LOG_LEVELS:
        sections["logLevel"] = level
    if "permission" in values:
        sections["permission"] = convert_rules_to_config(values["permission"])
    search = values.get("search", {})
    secrets.update(_list_texts(search.get("apiKey")))
    return {key: value for key, value in sections.items() if value not in (None, {})}


def _keep_unchanged(value: Any, _secrets: set[str]) -> Any:
    return value


def _redact_agents(agents: JSON, secrets: set[str]) -> JSON:
    return {name: each for name, agent in agents.items() if (each := _redact_agent(agent, secrets))}


def _redact_agent(agent: JSON, secrets: set[str]) -> JSON:
    visible = {
        key: value
        for key, value in agent.items()
        if key not in {"permission", "restrictions", "options"}
    }
    if "permission" in agent:
        visible["permission"] = convert_rules_to_config(agent["permission"])
    if "options" in agent:
        visible["options"] = _redact_other_options(agent["options"], secrets)
    return visible


def _redact_providers(providers: JSON, secrets: set[str]) -> JSON:
    return {name: _redact_provider(provider, secrets) for name, provider in providers.items()}


def _redact_provider(provider: JSON, secrets: set[str]) -> JSON:
    visible = dict(provider)
    if "api" in visible:
        visible["api"] = _redact_url(visible["api"], secrets)
    if "options" in visible:
        visible["options"] = _redact_provider_options(visible["options"], secrets)
    if "models" in visible:
        visible["models"] = {
            name: _redact_model(model, secrets) for name, model in visible["models"].items()
        }
    return visible


def _redact_provider_options(options: JSON, secrets: set[str]) -> JSON:
    visible: JSON = {}
    for key, value in options.items():
        if key in _ADDRESS_KEYS and isinstance(value, str):
            visible[key] = _redact_url(value, secrets)
        elif value is None or isinstance(value, bool | int | float):
            visible[key] = value
        elif key in _SECRET_GROUP_KEYS or re.search(_SENSITIVE_NAME, key):
            secrets.update(_list_texts(value))
    return visible


def _redact_model(model: JSON, secrets: set[str]) -> JSON:
    """Return a model; its limits and prices only if they have both fields that clients require."""
    secrets.update(_list_texts(model.get("headers")))
    visible = {
        key: value for key, value in model.items() if key not in {"headers", "disabled", "options"}
    }
    if "options" in model:
        visible["options"] = _redact_other_options(model["options"], secrets)
    if "variants" in model:
        visible["variants"] = {
            name: _redact_other_options(options, secrets)
            for name, options in model["variants"].items()
        }
    for key, required in (("cost", {"input", "output"}), ("limit", {"context", "output"})):
        if key in visible and not required <= visible[key].keys():
            del visible[key]
    return visible


def _redact_servers(servers: JSON, secrets: set[str]) -> JSON:
    return {name: _redact_server(server, secrets) for name, server in servers.items()}


def _redact_server(server: JSON, secrets: set[str]) -> JSON:
    """Return an MCP server: of its command the program only,
    since arguments hold keys as often as variables do.
    """
    visible = {key: server[key] for key in _VISIBLE_MCP_KEYS if key in server}
    if is_list(server.get("command")):
        visible["command"] = server["command"][:1]
    if isinstance(server.get("url"), str):
        visible["url"] = _redact_url(server["url"], secrets)
    for key in ("environment", "headers", "oauth"):
        secrets.update(_list_texts(server.get(key)))
    return visible


def _redact_tools(value: Any, secrets: set[str]) -> Any:
    """Return language servers or formatters: true or false for all,
    or the options of each by name.
    """
    return (
        {name: _redact_other_options(each, secrets) for name, each in value.items()}
        if is_object(value)
        else value
    )


def _redact_plugins(plugins: list[Any], secrets: set[str]) -> list[Any]:
    return [
        _redact_other_options(
            _redact_url(each, secrets) if isinstance(each, str) else each, secrets
        )
        for each in plugins
    ]


def _redact_skills(skills: JSON, secrets: set[str]) -> JSON:
    visible = _redact_other_options(skills, secrets)
    if is_list(visible.get("urls")):
        visible["urls"] = [_redact_url(str(url), secrets) for url in visible["urls"]]
    return visible


def _redact_other_options(value: Any, secrets: set[str]) -> Any:
    """Return settings that other programs define, without those named like secrets."""
    if is_list(value):
        return [_redact_other_options(each, secrets) for each in value]
    if not is_object(value):
        return value
    visible: JSON = {}
    for key, each in value.items():
        # Numbers and booleans are not secrets: `max_tokens` has a name like one.
        if (key in _SECRET_GROUP_KEYS or re.search(_SENSITIVE_NAME, key)) and not isinstance(
            each, bool | int | float | None
        ):
            secrets.update(_list_texts(each))
        else:
            visible[key] = _redact_other_options(each, secrets)
    return visible


def _redact_url(url: str, secrets: set[str]) -> str:
    if "://" not in url:
        return url
    plain = re.split(r"[?#]", re.sub(_URL_USER, "", url), maxsplit=1)[0]
    # The removed parts may hold keys, which are masked wherever else they occur.
    if plain != url:
        secrets.update(
            re.split(r"[:@?&=#]", " ".join((*re.findall(_URL_USER, url), url.partition("?")[2])))
        )
    return plain


def _list_texts(value: Any) -> list[str]:
    """Return every text inside a value, and its words."""
    return [part for text in iterate_texts(value) for part in (text, *text.split())]


def _mask_texts(value: Any, texts: list[str]) -> Any:
    """Return a value with these texts masked, and with integers limited to those
    that JSON readers can hold.
    """
    if isinstance(value, int) and not -_MAX_INTEGER <= value <= _MAX_INTEGER:
        return _MAX_INTEGER if value > 0 else -_MAX_INTEGER
    if isinstance(value, str):
        for text in texts:
            value = value.replace(text, _MASK)
        return value
    if is_object(value):
        return {key: _mask_texts(each, texts) for key, each in value.items()}
    return [_mask_texts(each, texts) for each in value] if is_list(value) else value


def _has_reference(origin: Origin) -> bool:
    """Return whether a value was written with a `{env:..}` or `{file:..}` reference."""
    text = origin.layer.document.text
    if "{env:" not in text and "{file:" not in text:
        return False
    return any(re.search(_REFERENCE_START, each) for each in _list_texts(origin.raw))


def _restore_references(value: Any, keys: KeyPath, origins: dict[str, Origin]) -> Any:
    """Replace values that came from variables and files by their references,
    except rules and `_CHOICE_KEYS`.
    """
    if len(keys) == 3 and (
        keys[-1] in _CHOICE_KEYS
        or (keys[0] == "agent" and keys[-1] in {"permission", "restrictions"})
    ):
        return value
    origin = origins.get(format_keys(keys))
    if origin is not None:
        return origin.raw
    if is_object(value):
        return {
            key: _restore_references(each, (*keys, key), origins) for key, each in value.items()
        }
    if is_list(value):
        return [
            _restore_references(each, (*keys, index), origins) for index, each in enumerate(value)
        ]
    return value


# Sections that are not in this table are omitted.
_REDACTORS: dict[str, Callable[[Any, set[str]], Any]] = {
    **dict.fromkeys(
        (
            *("model", "small_model", "fallback", "default_agent", "username", "shell", "share"),
            *("snapshot", "autoupdate"),
            *(
                "instructions",
                "enabled_providers",
                "disabled_providers",
                "command",
                "watcher",
                "server",
            ),
            *("compaction", "tool_output", "commands", "budget", "subagents"),
        ),
        _keep_unchanged,
    ),
    "provider": _redact_providers,
    "agent": _redact_agents,
    "mcp": _redact_servers,
    "plugin": _redact_plugins,
    "lsp": _redact_tools,
    "formatter": _redact_tools,
    "skills": _redact_skills,
    "experimental": _redact_other_options,
}
