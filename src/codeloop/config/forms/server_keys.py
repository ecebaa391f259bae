"""The keys that other programs have in their entries of MCP servers, beside those that say what is
started: limits, lists of tools, tokens, files of variables.
"""

from typing import Any, cast

from msgspec import Struct

from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.schema.wire import JSON

# Of seconds and milliseconds, a smaller number is one in seconds.
_LEAST_MS = 1_000
_SECONDS_KEYS = ("startup_timeout_sec", "tool_timeout_sec", "networkTimeout")
_MS_KEYS = ("startup_timeout_ms", "tool_timeout_ms")
_WANTED_TOOLS = ("includeTools", "enabled_tools", "enabledTools")
_UNWANTED_TOOLS = ("excludeTools", "disabled_tools", "disabledTools")
_ALLOWED_TOOLS = ("alwaysAllow", "autoApprove")
_OWN_KEYS = (
    *("type", "command", "cwd", "environment", "enabled", "timeout", "tools", "protocol"),
    *("sandbox", "url", "headers", "oauth", "envFile"),
)
_CONVERTED_KEYS = (
    *("args", "env", "serverUrl", "httpUrl", "disabled", "transport", "transportType", "env_file"),
    *("bearer_token_env_var", "http_headers", "env_http_headers", "env_vars", "trust"),
    *(*_SECONDS_KEYS, *_MS_KEYS, *_WANTED_TOOLS, *_UNWANTED_TOOLS, *_ALLOWED_TOOLS),
)
# What other programs show or remember, and what has no meaning here.
_SILENT_KEYS = frozenset(
    (
        *(
            "name",
            "description",
            "title",
            "icon",
            "icons",
            "gallery",
            "version",
            "metadata",
            "source",
        ),
        *("$schema", "dev", "watchPaths", "scopes", "required", "isActive", "tags", "provider"),
        *(
            "authProviderType",
            "supports_parallel_tool_calls",
            "experimental_environment",
            "settings",
        ),
    )
)


class EntryKeys(Struct, frozen=True):
    """The further keys of an entry, in our form.

    `entry`: keys to add; `allowed`: tools that the other program allows without a question, `*` for
    all; `notes`: what the user should know, a sentence each.
    """

    entry: JSON
    allowed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def convert_keys(data: JSON, *, is_ours: bool) -> EntryKeys:
    """Convert the further keys of an entry. `is_ours`: the entry has our form,
    whose `timeout` is in ms whatever the number.
    """
    entry: JSON = {
        key: data[key]
        for key in ("enabled", "timeout", "tools", "oauth", "protocol", "sandbox")
        if key in data
    }
    notes: list[str] = []
    if data.get("disabled") is True:
        entry["enabled"] = False
    if (timeout := _read_timeout(data, notes, is_ours=is_ours)) is not None:
        entry["timeout"] = timeout
    wanted = [each for key in _WANTED_TOOLS for each in _list_texts(data.get(key))]
    unwanted = [f"!{each}" for key in _UNWANTED_TOOLS for each in _list_texts(data.get(key))]
    if wanted or unwanted:
        entry["tools"] = [*_list_texts(data.get("tools")), *wanted, *unwanted]
    file = data.get("envFile", data.get("env_file"))
    if isinstance(file, str):
        entry["envFile"] = file
    if isinstance(data.get("sandbox"), dict) and (
        unknown := sorted({*data["sandbox"]} - {"writable", "readable", "network", "hosts"})
    ):
        notes.append(f"`sandbox` has no key {', '.join(unknown)} here, so that is left out.")
        entry["sandbox"] = {
            key: value for key, value in data["sandbox"].items() if key not in unknown
        }
    allowed = [each for key in _ALLOWED_TOOLS for each in _list_texts(data.get(key))]
    if data.get("trust") is True or any(data.get(key) is True for key in _ALLOWED_TOOLS):
        allowed = ["*"]
    notes += _describe_unknown(data)
    return EntryKeys(entry, tuple(allowed), tuple(notes))


def convert_headers(data: JSON) -> JSON:
    """Return the headers that an entry has under other programs' keys."""
    headers: JSON = {**as_object(data.get("http_headers"))}
    for name, variable in as_object(data.get("env_http_headers")).items():
        headers[name] = f"{{env:{variable}}}"
    if isinstance(variable := data.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer {{env:{variable}}}"
    return headers


def convert_passed_variables(data: JSON) -> JSON:
    """Return the variables that an entry only names, which are passed on."""
    return {name: f"{{env:{name}}}" for name in _list_texts(data.get("env_vars"))}


def _read_timeout(data: JSON, notes: list[str], *, is_ours: bool) -> int | None:
    """Return the longest time-out of an entry in ms; None: it has none that is not ours."""
    milliseconds: list[float] = []
    for key in ("timeout", *_SECONDS_KEYS, *_MS_KEYS):
        value = data.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            continue
        is_seconds = key in _SECONDS_KEYS or (
            key == "timeout" and not is_ours and value < _LEAST_MS
        )
        if is_seconds and key == "timeout":
            notes.append(f"`timeout` {value:g} is taken for seconds; ours is written in ms.")
        milliseconds.append(value * 1_000 if is_seconds else value)
    return round(max(milliseconds)) if milliseconds else None


def _describe_unknown(data: JSON) -> list[str]:
    """Return a sentence for each key that no program is known to have."""
    known = {*_OWN_KEYS, *_CONVERTED_KEYS, *_SILENT_KEYS}
    return [
        f"`{key}` is not known and left out.{format_suggestion(find_similar(key, sorted(known)))}"
        for key in data
        if key not in known
    ]


def _list_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []


def as_object(value: Any) -> JSON:
    """Return a value that is a JSON object; an empty object in place of any other value."""
    return cast("JSON", value) if isinstance(value, dict) else {}
