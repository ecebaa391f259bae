"""Reads `hooks` (in the form of Claude Code's settings, or the path of such a file) into rows."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from codeloop.config.files import read_text
from codeloop.config.normalise import Values, describe
from codeloop.config.paths import Paths
from codeloop.config.sources import Layer, format_keys
from codeloop.kit.jsonc import Document, JsoncError, Keys, is_list, is_object, parse
from codeloop.kit.small_files import FileState, file_state
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.wire import JSON

EVENTS = (
    *("PreToolUse", "PostToolUse", "PermissionRequest", "UserPromptSubmit", "Stop", "SubagentStop"),
    *("SessionStart", "SessionEnd", "PreCompact", "Notification"),
)


MODEL_EVENTS = frozenset(("PreToolUse", "PostToolUse", "PermissionRequest", "UserPromptSubmit", "Stop", "SubagentStop"))
"""Events whose hooks may ask a model or an agent."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_address(value: Any) -> bool:
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isprintable() and " " not in value else None
        return parts is not None and parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_sandbox(value: Any) -> bool:
    return isinstance(value, bool) or is_object(value)


def _are_texts(value: Any) -> bool:
    return is_list(value) and all(isinstance(each, str) for each in value)


def _are_headers(value: Any) -> bool:
    return is_object(value) and all(_HEADER.fullmatch(key) and isinstance(each, str) for key, each in value.items())


class HookField(NamedTuple):
    """The type of a row's field. `is_required`: it is required."""

    type_name: str
    is_valid: Callable[[Any], bool]
    is_required: bool = False


_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TEXTS = HookField("a list of texts", _are_texts)
_PROMPT = HookField("a text", _is_text, is_required=True)
_MODEL = HookField("a model", _is_text)
_FIELDS: dict[str, dict[str, HookField]] = {
    "command": {
        "command": HookField("a command", _is_text, is_required=True),
        "args": _TEXTS,
        "allowedEnvVars": _TEXTS,
        "sandbox": HookField("true, false or an object", _is_sandbox),
    },
    "http": {
        "url": HookField("an address that begins with http:// or https://", _is_address, is_required=True),
        "headers": HookField("an object of texts, by the names of headers", _are_headers),
        "allowedEnvVars": _TEXTS,
    },
    "prompt": {
        "prompt": _PROMPT,
        "model": _MODEL,
        "continueOnBlock": HookField("true or false", _is_switch),
    },
    "agent": {"prompt": _PROMPT, "model": _MODEL},
}
"""The fields of each type of row, besides those of all."""
_COMMON = frozenset(("type", "timeout", "policy", "if", "statusMessage", "once"))
_SHELLS = ("bash", None)
_SHELL = (frozenset[str](), frozenset(("shell",)))
_PLUGIN_FIELDS = frozenset(("pluginRoot",))
"""Fields that only rows of plugins have; no file may set them."""


def fields_of(kind: str) -> frozenset[str]:
    """List the fields of a type of row; none: there is no such type."""
    return _COMMON | _FIELDS[kind].keys() if kind in _FIELDS else frozenset()


class HookRows(NamedTuple):
    """The rows of a layer, in the form of `schema.config`, and a warning for each that is not run."""

    rows: list[JSON]
    warnings: list[str]


def read_hook_rows(
    values: Values, paths: Paths, root: Path, files: dict[Path, FileState], *, trusted: bool
) -> HookRows:
    """Return the rows of a layer's `hooks`. `files` receives the file that it names.

    `root`: the top of the project. A file in it belongs to the project, so it is only read if that is `trusted`.
    Raises CodeloopError with file, line and column: no such file, or an unknown form.
    """
    layer = values.layer
    value: Any = values.values["hooks"]
    read_hook_rows = HookRows([], [])
    if isinstance(value, str):
        file = layer.base / paths.expand(value)
        files.setdefault(file, file_state(file))
        is_inside = Path(os.path.realpath(file)).is_relative_to(root)
        if is_inside and not trusted:
            read_hook_rows.warnings.append(
                f"{layer.place(('hooks',))}: {file} is not read, since its project is not trusted."
            )
            return read_hook_rows
        layer_of_file = _read(layer, file, is_project=layer.is_project or is_inside)
        settings = layer_of_file.raw
        value = {} if settings.get("disableAllHooks") is True else settings.get("hooks", {})
        layer = layer_of_file
    _add_rows(read_hook_rows, layer, value)
    return read_hook_rows


def find_mistake(layer: Layer) -> str:
    """Say what is wrong with the `hooks` of a layer; "": nothing is."""
    try:
        _add_rows(HookRows([], []), layer, layer.raw["hooks"])
    except CodeloopError as error:
        return str(error)
    return ""


def _read(layer: Layer, file: Path, *, is_project: bool) -> Layer:
    """Return a settings file as a layer."""
    text = read_text(file, CONFIG_BYTES.value)
    if text is None:
        raise CodeloopError(f"{layer.place(('hooks',))}: the file {file} of hooks does not exist.")
    try:
        document: Document = parse(text, depth=CONFIG_DEPTH.value)
    except JsoncError as error:
        raise CodeloopError(f"{file}:{error.position}: {error}.") from error
    file_layer = Layer(layer.name, str(file), file.parent, document, is_project)
    if not is_object(document.value):
        raise CodeloopError(f"{file_layer.place(())}: expected an object in braces.")
    return file_layer


def _add_rows(read_hook_rows: HookRows, layer: Layer, value: Any) -> None:
    for event, groups in _object(layer, value, ("hooks",)).items():
        keys: Keys = ("hooks", event)
        if event not in EVENTS:
            read_hook_rows.warnings.append(
                f"{layer.place(keys, of_key=True)}: {format_keys(keys)} means nothing to codeloop."
            )
            continue
        for at, group in _items(layer, groups, keys):
            inner = (*keys, at)
            data = _object(layer, group, inner)
            for number, each in _items(layer, data.get("hooks", []), (*inner, "hooks")):
                _add_row(read_hook_rows, layer, (*inner, "hooks", number), data.get("matcher"), each)


def _add_row(read_hook_rows: HookRows, layer: Layer, keys: Keys, matcher: Any, value: Any) -> None:
    data = _object(layer, value, keys)
    kind = data.get("type", "command")
    if kind not in _FIELDS:
        read_hook_rows.warnings.append(
            f"{layer.place(keys)}: hooks of the type {kind!a} are not run: {', '.join(_FIELDS)} are."
        )
        return
    if kind in {"prompt", "agent"} and keys[1] not in MODEL_EVENTS:
        read_hook_rows.warnings.append(f"{layer.place(keys)}: hooks of the type {kind!a} are not run at {keys[1]}.")
        return
    if kind == "command" and data.get("shell") not in _SHELLS:
        read_hook_rows.warnings.append(
            f"{layer.place(keys)}: hooks for the shell {data['shell']!a} are not run, only for bash."
        )
        return
    is_from_plugin = not layer.document.text
    known_keys = fields_of(kind) | _SHELL[kind == "command"] | (_PLUGIN_FIELDS if is_from_plugin else frozenset[str]())
    for key in data.keys() - known_keys:
        inner = (*keys, key)
        read_hook_rows.warnings.append(
            f"{layer.place(inner, of_key=True)}: {format_keys(inner)} means nothing to codeloop."
        )
    if matcher is not None and not isinstance(matcher, str):
        _fail(layer, (*keys[:3], "matcher"), "expected a text", matcher)
    timeout = data.get("timeout")
    if timeout is not None and (not isinstance(timeout, int | float) or isinstance(timeout, bool) or timeout <= 0):
        _fail(layer, (*keys, "timeout"), "expected seconds", timeout)
    for key, field in _FIELDS[kind].items():
        if (key in data or field.is_required) and not field.is_valid(data.get(key)):
            _fail(layer, (*keys, key), f"expected {field.type_name}", data.get(key))
    condition = data.get("if", "")
    if not isinstance(condition, str):
        _fail(layer, (*keys, "if"), "expected a text", condition)
    read_hook_rows.rows.append(
        {
            **{key: data[key] for key in _FIELDS[kind] if key in data},
            "type": kind,
            "event": keys[1],
            "matcher": matcher or "",
            "if": condition,
            "timeout": timeout,
            "policy": data.get("policy") is True,
            "place": layer.place(keys),
            "isProject": layer.is_project,
            "pluginRoot": data.get("pluginRoot", "") if is_from_plugin else "",
        }
    )


def _items(layer: Layer, value: Any, keys: Keys) -> Iterator[tuple[int, Any]]:
    if not is_list(value):
        _fail(layer, keys, "expected a list", value)
    yield from enumerate(value)


def _object(layer: Layer, value: Any, keys: Keys) -> JSON:
    if not is_object(value):
        _fail(layer, keys, "expected an object", value)
    return value


def _fail(layer: Layer, keys: Keys, expectation: str, value: Any) -> NoReturn:
    raise CodeloopError(f"{layer.place(keys)}: {format_keys(keys)}: {expectation}, got {describe(value)}.")
