"""Filters an untrusted project's configuration: only settings that restrict codeloop are kept."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from codeloop.config.normalise import Values
from codeloop.config.sources import format_keys
from codeloop.kit.jsonc import Keys, is_list, is_object
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_PATTERNS, CONFIG_RULES, TOOL_OUTPUT_BYTES, TOOL_OUTPUT_LINES
from codeloop.schema.wire import JSON

_MODEL = re.compile(r"[\w.-]+/[\w.:@/+-]+")
_SINGLE = 19
"""The extra cost of a `?`: searching for a part with wildcards takes that much longer."""
_SHARE = {"auto": 0, "manual": 1, "disabled": 2}
_STRICTER = {"yolo": ("auto", "ask", "plan"), "auto": ("ask", "plan")}
# How tight the values of the sandbox's keys are; the first is the default.
_TIGHTER = {"mode": {"auto": 1, "off": 0, "required": 2}, "network": {"hosts": 1, "on": 0, "off": 2}}
_SMALLEST = {"max_lines": TOOL_OUTPUT_LINES.value, "max_bytes": TOOL_OUTPUT_BYTES.value}


def filter_layer(values: Values, merged: JSON) -> tuple[Values, list[str]]:
    """Return the settings that an untrusted project's layer may set over those before, and the names of the others.

    Its rules become `restrictions` (see `config.trust.restrict`). Raises CodeloopError when there are too many of them.
    """
    filtered = Values(values.layer, {}, dict(values.written))
    ignored: list[str] = []
    for key, value in values.values.items():
        if key == "permission":
            _restrict(filtered, filtered.values, value, (), ignored)
        elif key == "agent":
            for name, agent in value.items():
                _agent(filtered, name, agent, merged, ignored)
        else:
            accepted = _ACCEPTED[key](value, merged) if key in _ACCEPTED else None
            if accepted is None or _is_less(accepted, value):
                ignored.append(format_keys(filtered.origin((key,))))
            if accepted is not None:
                filtered.values[key] = accepted
            if is_list(accepted):
                for at, each in enumerate(accepted):
                    filtered.written[key, at] = (key, value.index(each)) if each in value else (key,)
    return filtered, ignored


def _is_less(accepted: Any, value: Any) -> bool:
    return any(each not in accepted for each in value) if is_list(value) else accepted != value


def _agent(values: Values, name: str, agent: JSON, merged: JSON, ignored: list[str]) -> None:
    """Keep an agent's rules as restrictions, and fewer steps than it may otherwise take."""
    narrow: JSON = {}
    for key, value in agent.items():
        keys = ("agent", name, key)
        if key == "permission":
            _restrict(values, narrow, value, ("agent", name), ignored)
        elif key == "steps" and _is_count(value) and value <= _present(merged, "agent", name, "steps", value):
            narrow["steps"] = value
        elif key != "mode" or keys in values.written:
            ignored.append(format_keys(values.origin(keys)))
    if narrow:
        values.values.setdefault("agent", {})[name] = narrow


def _restrict(values: Values, section: JSON, rules: list[JSON], keys: Keys, ignored: list[str]) -> None:
    if len(rules) > CONFIG_RULES.value:
        where = values.layer.place(values.origin((*keys, "permission", CONFIG_RULES.value)))
        raise CodeloopError(
            f"{where}: more than {CONFIG_RULES.value} permission rules in a project that is not trusted. "
            "Look at them, then trust it with `codeloop trust`, or remove some."
        )
    written = "".join(rule["permission"] + rule["pattern"] for rule in rules)
    if len(written) + _SINGLE * written.count("?") > CONFIG_PATTERNS.value:
        raise CodeloopError(
            f"{values.layer.place(values.origin((*keys, 'permission')))}: "
            "the permission rules of a project that is not "
            "trusted are too long to be compared with each command. "
            "Look at them, then trust it with `codeloop trust`, or remove some."
        )
    section["restrictions"] = rules
    for index, rule in enumerate(rules):
        at = values.origin((*keys, "permission", index))
        values.written[*keys, "restrictions", index] = at
        if rule["action"] == "allow":
            ignored.append(f"{format_keys(at)} (allow)")


def _instructions(value: Any, _merged: JSON) -> Any:
    """Keep what stays inside the work tree by its name; links are looked at when the files are read."""
    inside = [each for each in value if isinstance(each, str) and _is_inside(each)] if is_list(value) else []
    return inside or None


def _is_inside(path: str) -> bool:
    is_reference = "{env:" in path or "{file:" in path or ":" in path.split("/", maxsplit=1)[0]
    return not (is_reference or path.startswith(("/", "~", "$")) or ".." in PurePosixPath(path).parts)


def _model(key: str) -> Callable[[Any, JSON], Any]:
    """Let a project propose a model where the user chose none. Its providers are ignored, so it can't be its own."""

    def accept(value: Any, merged: JSON) -> Any:
        is_plain = isinstance(value, str) and _MODEL.fullmatch(value) is not None
        return value if is_plain and merged.get(key) in (None, value) else None

    return accept


def _extend_disabled(value: Any, merged: JSON) -> Any:
    if not is_list(value):
        return None
    disabled = merged.get("disabled_providers")
    present = disabled if is_list(disabled) else []
    return [*present, *(each for each in value if isinstance(each, str) and each not in present)]


def _share(value: Any, merged: JSON) -> Any:
    present = merged.get("share")
    least = _SHARE.get(present, 1) if isinstance(present, str) else 1
    return value if isinstance(value, str) and _SHARE.get(value, -1) >= least else None


def _profile(value: Any, merged: JSON) -> Any:
    present = merged.get("profile", "auto")
    return value if value == present or value in _STRICTER.get(present, ()) else None


def _output(value: Any, merged: JSON) -> Any:
    if not is_object(value):
        return None
    smaller = {
        key: value[key]
        for key, most in _SMALLEST.items()
        if _is_count(value.get(key)) and value[key] <= _present(merged, "tool_output", key, most)
    }
    return smaller or None


def _sandbox(value: Any, merged: JSON) -> Any:
    """Keep what makes the sandbox tighter: a stricter mode or network, fewer hosts, more that is hidden.

    What it opens for writing or reading is left out.
    """
    before = merged.get("sandbox")
    present: JSON = before if is_object(before) else {}
    if not is_object(value):
        return None
    data: JSON = {}
    for key, ranks in _TIGHTER.items():
        requested, least = value.get(key), present.get(key, next(iter(ranks)))
        if isinstance(requested, str) and ranks.get(requested, -1) >= ranks.get(least, 0):
            data[key] = requested
    if value.get("extensions") is True:
        data["extensions"] = True
    present_hosts, more = present.get("hosts", []), value.get("hosts")
    if is_list(more):
        data["hosts"] = [host for host in more if is_list(present_hosts) and host in present_hosts]
    before, hidden = present.get("hidden", []), value.get("hidden")
    if is_list(hidden) and is_list(before):
        data["hidden"] = [*before, *(path for path in hidden if isinstance(path, str) and path not in before)]
    return data or None


def _present(merged: Any, *keys: Any) -> int:
    """Return the number at `keys[:-1]`, else `keys[-1]`, the default."""
    *path, default = keys
    for key in path:
        merged = merged.get(key) if is_object(merged) else None
    return merged if _is_count(merged) else default


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


_ACCEPTED: dict[str, Callable[[Any, JSON], Any]] = {
    "instructions": _instructions,
    "model": _model("model"),
    "small_model": _model("small_model"),
    "disabled_providers": _extend_disabled,
    "profile": _profile,
    "share": _share,
    "tool_output": _output,
    "sandbox": _sandbox,
    "compaction": lambda value, _merged: value,
    "snapshot": lambda value, _merged: True if value is True else None,
}
