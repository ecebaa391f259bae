"""Reads the key `hooks` of the configuration, and converts it to rows: one for each hook.

`hooks` has the form of Claude Code's settings, or is the path of such a settings file.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from codeloop.config.files import read_text
from codeloop.config.forms.claude_rules import read_settings_rules
from codeloop.config.forms.normalise import NormalisedValues
from codeloop.config.paths import Paths
from codeloop.config.sources import Layer, format_keys
from codeloop.kit.jsonc import (
    Document,
    JsoncError,
    KeyPath,
    get_type_name,
    is_list,
    is_object,
    parse_jsonc,
)
from codeloop.kit.small_files import FileState, read_file_state
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.wire import JSON

HOOK_EVENTS = (
    *("PreToolUse", "PostToolUse", "PermissionRequest", "UserPromptSubmit", "Stop", "SubagentStop"),
    *("SessionStart", "SessionEnd", "PreCompact", "Notification"),
)
"""The events that can have hooks."""
MODEL_HOOK_EVENTS = frozenset(
    ("PreToolUse", "PostToolUse", "PermissionRequest", "UserPromptSubmit", "Stop", "SubagentStop")
)
"""The events that can have hooks of the types `prompt` and `agent`, which ask a model."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_address(value: Any) -> bool:
    try:
        parts = (
            urlsplit(value)
            if isinstance(value, str) and value.isprintable() and " " not in value
            else None
        )
        # Reading the port raises ValueError if it is out of range.
        return (
            parts is not None
            and parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
        )
    except ValueError:
        return False


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_sandbox(value: Any) -> bool:
    return isinstance(value, bool) or is_object(value)


def _are_texts(value: Any) -> bool:
    return is_list(value) and all(isinstance(each, str) for each in value)


def _are_headers(value: Any) -> bool:
    return is_object(value) and all(
        re.fullmatch(_HEADER_NAME, key) and isinstance(each, str) for key, each in value.items()
    )


class HookField(NamedTuple):
    """A field of a hook. `type_name`: the expected type, for error messages."""

    type_name: str
    is_valid: Callable[[Any], bool]
    is_required: bool = False


# The characters that RFC 9110 allows in the name of a header.
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_TEXTS_FIELD = HookField("a list of texts", _are_texts)
_PROMPT_FIELD = HookField("a text", _is_text, is_required=True)
_MAY_ALLOW_FIELD = HookField("true or false", _is_switch)
_MODEL_FIELD = HookField("a model", _is_text)
_FIELDS_BY_TYPE: dict[str, dict[str, HookField]] = {
    "command": {
        "command": HookField("a command", _is_text, is_required=True),
        "args": _TEXTS_FIELD,
        "allowedEnvVars": _TEXTS_FIELD,
        "sandbox": HookField("true, false or an object", _is_sandbox),
        "mayAllow": _MAY_ALLOW_FIELD,
    },
    "http": {
        "url": HookField(
            "an address that begins with http:// or https://", _is_address, is_required=True
        ),
        "headers": HookField("an object of texts, by the names of headers", _are_headers),
        "allowedEnvVars": _TEXTS_FIELD,
        "mayAllow": _MAY_ALLOW_FIELD,
    },
    "prompt": {
        "prompt": _PROMPT_FIELD,
        "model": _MODEL_FIELD,
        "continueOnBlock": HookField("true or false", _is_switch),
    },
    "agent": {"prompt": _PROMPT_FIELD, "model": _MODEL_FIELD},
}
"""The fields of each type of hook, in addition to the common ones."""
_COMMON_FIELDS = frozenset(("type", "timeout", "policy", "if", "statusMessage", "once"))
_SUPPORTED_SHELLS = ("bash", None)
"""The values of a hook's `shell`; None: it has none."""
_COMMAND_FIELDS = frozenset(("shell",))
"""Fields of hooks of the type `command` that are only checked."""
_PLUGIN_FIELDS = frozenset(("pluginRoot",))
"""Fields that are set for the hooks of plugins; no file may set them."""


def list_hook_fields(kind: str) -> frozenset[str]:
    """Return the fields of a type of hook; empty: there is no such type."""
    return _COMMON_FIELDS | _FIELDS_BY_TYPE[kind].keys() if kind in _FIELDS_BY_TYPE else frozenset()


_LOOSENING_KEYS = {
    "sandbox": "it counts in your own configuration only",
    "mayAllow": "only a hook of yours without a `sandbox` of its own may allow anything",
}
"""Fields that do not count in every hook, with the reason."""


class HookRows(NamedTuple):
    """The hooks of a layer in the form of `schema.config`;
    warnings of hooks that are not run and of unknown fields.

    `restrictions`: the rules of a settings file of Claude Code that deny something or ask;
    its others do not count.
    """

    rows: list[JSON]
    warnings: list[str]
    restrictions: list[JSON]


def read_hook_rows(
    values: NormalisedValues,
    paths: Paths,
    root: Path,
    files: dict[Path, FileState],
    *,
    trusted: bool,
) -> HookRows:
    """Return the rows of a layer's `hooks`. If `hooks` is the path of a file,
    that is added to `files` with its state.

    `root`: the top of the project. A file in it belongs to the project, so it is only read if the
    project is `trusted`. Raises CodeloopError, with file, line and column, if the file is missing
    or `hooks` has an unknown form.
    """
    layer = values.layer
    value: Any = values.values["hooks"]
    result = HookRows([], [], [])
    if isinstance(value, str):
        file = layer.base / paths.expand_home(value)
        files.setdefault(file, read_file_state(file))
        is_inside = Path(os.path.realpath(file)).is_relative_to(root)
        if is_inside and not trusted:
            result.warnings.append(
                f"{layer.format_location(('hooks',))}: {file} is not read, since its project is not trusted."
            )
            return result
        layer_of_file = _read_settings_file(layer, file, is_project=layer.is_project or is_inside)
        settings = layer_of_file.raw
        # A setting of Claude Code, which switches the hooks off.
        permissions: Any = settings.get("permissions")
        rules = read_settings_rules(permissions) if is_object(permissions) else ()
        result.restrictions.extend(rule for rule, _ in rules if rule["action"] != "allow")
        value = {} if settings.get("disableAllHooks") is True else settings.get("hooks", {})
        layer = layer_of_file
    _add_rows(result, layer, value)
    return result


def find_hooks_error(layer: Layer) -> str:
    """Return the first error in the `hooks` of a layer; "" when there is none."""
    try:
        _add_rows(HookRows([], [], []), layer, layer.raw["hooks"])
    except CodeloopError as error:
        return str(error)
    return ""


def _read_settings_file(layer: Layer, file: Path, *, is_project: bool) -> Layer:
    """Return a settings file that `hooks` names as a layer. Raises CodeloopError."""
    text = read_text(file, CONFIG_BYTES.value)
    if text is None:
        raise CodeloopError(
            f"{layer.format_location(('hooks',))}: the file {file} of hooks does not exist."
        )
    try:
        document: Document = parse_jsonc(text, depth=CONFIG_DEPTH.value)
    except JsoncError as error:
        raise CodeloopError(f"{file}:{error.position}: {error}.") from error
    file_layer = Layer(layer.name, str(file), file.parent, document, is_project)
    if not is_object(document.value):
        raise CodeloopError(f"{file_layer.format_location(())}: expected an object in braces.")
    return file_layer


def _add_rows(result: HookRows, layer: Layer, value: Any) -> None:
    """Add the rows of `{EVENT: [{"matcher": ..., "hooks": [HOOK, ...]}, ...]}`."""
    for event, groups in _check_object(layer, value, ("hooks",)).items():
        keys: KeyPath = ("hooks", event)
        if event not in HOOK_EVENTS:
            result.warnings.append(
                f"{layer.format_location(keys, of_key=True)}: {format_keys(keys)} means nothing to codeloop."
            )
            continue
        for group_index, value_of_group in _check_list(layer, groups, keys):
            group_keys = (*keys, group_index)
            group = _check_object(layer, value_of_group, group_keys)
            hooks = [*_check_list(layer, group.get("hooks", []), (*group_keys, "hooks"))]
            if not hooks:
                result.warnings.append(
                    f"{layer.format_location(group_keys)}: {format_keys(group_keys)} has nothing in `hooks`."
                )
            for index, hook in hooks:
                _add_row(result, layer, (*group_keys, "hooks", index), group.get("matcher"), hook)


def _add_row(result: HookRows, layer: Layer, keys: KeyPath, matcher: Any, value: Any) -> None:
    """Add the row of a hook, or a warning if it is not run.
    Raises CodeloopError if a field has a wrong value.

    `keys`: its path, such as `("hooks", "Stop", 0, "hooks", 1)`. `matcher`: that of its group.
    """
    data = _check_object(layer, value, keys)
    kind, event = data.get("type", "command"), keys[1]
    reason = _explain_skipped(data, kind, event)
    if reason:
        result.warnings.append(f"{layer.format_location(keys)}: {reason}")
        return
    # A layer without a text is of a plugin (or of another extension,
    # or the command line): files are parsed from one.
    is_from_plugin = not layer.document.text
    known_keys = list_hook_fields(kind)
    known_keys |= _COMMAND_FIELDS if kind == "command" else frozenset()
    known_keys |= _PLUGIN_FIELDS if is_from_plugin else frozenset()
    for key in data.keys() - known_keys:
        inner = (*keys, key)
        result.warnings.append(
            f"{layer.format_location(inner, of_key=True)}: {format_keys(inner)} means nothing to codeloop."
        )
    if matcher is not None and not isinstance(matcher, str):
        _fail(layer, (*keys[:3], "matcher"), "expected a text", matcher)
    timeout = data.get("timeout")
    if timeout is not None and (
        not isinstance(timeout, int | float) or isinstance(timeout, bool) or timeout <= 0
    ):
        _fail(layer, (*keys, "timeout"), "expected seconds", timeout)
    for key, field in _FIELDS_BY_TYPE[kind].items():
        if (key in data or field.is_required) and not field.is_valid(data.get(key)):
            _fail(layer, (*keys, key), f"expected {field.type_name}", data.get(key))
    condition = data.get("if", "")
    if not isinstance(condition, str):
        _fail(layer, (*keys, "if"), "expected a text", condition)
    loosening_keys = _find_loosening_keys(layer, data)
    for key in loosening_keys:
        inner = (*keys, key)
        result.warnings.append(
            f"{layer.format_location(inner, of_key=True)}: {format_keys(inner)}: ignored, {_LOOSENING_KEYS[key]}."
        )
    result.rows.append(
        {
            **{
                key: data[key]
                for key in _FIELDS_BY_TYPE[kind]
                if key in data and key not in loosening_keys
            },
            "type": kind,
            "event": event,
            "matcher": matcher or "",
            "if": condition,
            "timeout": timeout,
            "policy": data.get("policy") is True,
            "place": layer.format_location(keys),
            "isProject": layer.is_project,
            "pluginRoot": data.get("pluginRoot", "") if is_from_plugin else "",
        }
    )


def _find_loosening_keys(layer: Layer, data: JSON) -> list[str]:
    """Return the keys of a hook that do not count: those of a project that permit more, and
    `mayAllow` of a free one.

    A project's hook loads files that the model can edit, so only the user may exempt one from the
    sandbox, and none may say yes.
    """
    keys = ["sandbox"] if layer.is_project and data.get("sandbox", True) is not True else []
    # A hook that the project can't be hidden from might load files of it.
    can_hide = not layer.is_project and data.get("sandbox", True) is True
    return [*keys, "mayAllow"] if data.get("mayAllow") is True and not can_hide else keys


def _explain_skipped(data: JSON, kind: Any, event: str | int) -> str:
    """Return the reason why a hook is not run; "": it is."""
    if kind not in _FIELDS_BY_TYPE:
        return f"hooks of the type {kind!a} are not run: {', '.join(_FIELDS_BY_TYPE)} are."
    if kind in {"prompt", "agent"} and event not in MODEL_HOOK_EVENTS:
        return f"hooks of the type {kind!a} are not run at {event}."
    if kind == "command" and data.get("shell") not in _SUPPORTED_SHELLS:
        return f"hooks for the shell {data['shell']!a} are not run, only for bash."
    return ""


def _check_list(layer: Layer, value: Any, keys: KeyPath) -> Iterator[tuple[int, Any]]:
    """Yield the index and the value of each item. Raises CodeloopError if `value` is not a list."""
    if not is_list(value):
        _fail(layer, keys, "expected a list", value)
    yield from enumerate(value)


def _check_object(layer: Layer, value: Any, keys: KeyPath) -> JSON:
    if not is_object(value):
        _fail(layer, keys, "expected an object", value)
    return value


def _fail(layer: Layer, keys: KeyPath, expectation: str, value: Any) -> NoReturn:
    raise CodeloopError(
        f"{layer.format_location(keys)}: {format_keys(keys)}: {expectation}, got {get_type_name(value)}."
    )
