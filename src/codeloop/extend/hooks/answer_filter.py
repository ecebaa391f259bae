"""Filters the answers of hooks: only those that may say yes can permit more;
none leads out of its sandbox. Pure.
"""

from pathlib import PurePath
from typing import Literal

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON

Reach = Literal["project", "own", "all"]
"""An extension's confinement: the commands' sandbox (a project's), its own (a user's), or none."""
# Configuration keys that can run programs without a sandbox, or without a question.
_ESCAPING_KEYS = frozenset(("sandbox", "profile", "hooks", "server", "apiKeyHelper"))
_RULE_KEYS = frozenset(("permission", "tools", "permissions", "policies"))
_STRICTNESS = {"allow": 0, None: 1, "ask": 2, "deny": 3}
"""How strict the values of `status` and `permission` are; None: the rules decide."""
_DECISIONS = {"permission.ask": "status", "tool.execute.before": "permission"}
"""By hook: the value of its output that decides about a call."""
_PROMPT_SETTINGS = ("agent", "tools")
"""The values of a prompt that decide by which rules it is answered."""


def keep_restrictions(name: str, output: JSON, answer: JSON) -> JSON:
    """Return the answer of a handler that may only restrict. `output`: what it was called with.

    Its `allow` counts as no decision, it lifts no earlier one, and it chooses neither the agent nor
    the tools of a prompt: what it loads may be files of the project, which the model edits.
    """
    if (key := _DECISIONS.get(name)) is not None:
        before, after = output.get(key), answer.get(key)
        if after == "allow" and answer.get("args") != output.get("args"):
            # An earlier handler allowed other arguments.
            return _restore(answer, {}, key)
        return (
            answer
            if _STRICTNESS.get(after, 0) >= _STRICTNESS.get(before, 0)
            else _restore(answer, output, key)
        )
    if name == "chat.message" and is_object(before := output.get("message")):
        after = answer.get("message")
        return (
            {**answer, "message": _restore(after, before, *_PROMPT_SETTINGS)}
            if is_object(after)
            else answer
        )
    return answer


def _restore(values: JSON, before: JSON, *keys: str) -> JSON:
    """Return `values` in which these keys are as in `before`."""
    others = {key: value for key, value in values.items() if key not in keys}
    return others | {key: before[key] for key in keys if key in before}


def filter_answer(reach: Reach, name: str, payload: JSON, output: JSON, answer: JSON) -> JSON:
    """Return the permitted part of a hook's answer.
    `payload` and `output` are what the hook was called with.
    """
    if reach == "all":
        return answer
    match name:
        # These variables are for programs outside the sandbox,
        # where one such as LD_PRELOAD would run code.
        case "shell.env" if reach == "project" and (
            "sessionID" not in payload or payload.get("outside")
        ):
            return output
        case "config":
            return _filter_config(answer, output)
        case _:
            return answer


def _filter_config(new: JSON, old: JSON) -> JSON:
    """Return a changed configuration in which keys that could lead out of the sandbox
    have their original values.
    """
    # The original values are put back, so that an answer can't remove them either.
    config: JSON = {key: old[key] for key in _ESCAPING_KEYS & old.keys()}
    for key, value in new.items():
        before = old.get(key)
        if key in _ESCAPING_KEYS or _is_new_container(value, before):
            continue
        if key in _RULE_KEYS:
            config[key] = _tighten(value, before)
        elif is_object(value):
            config[key] = _filter_config(value, before if is_object(before) else {})
        else:
            config[key] = value
    return {key: value for key, value in config.items() if value is not None or key in old}


def _is_new_container(value: object, before: object) -> bool:
    """Return whether a value is a new MCP server in a container: it runs without a sandbox,
    so it would lead out.
    """
    command = value.get("command") if is_object(value) and value != before else None
    first = command[0] if is_list(command) and command else None
    if not isinstance(first, str):
        return False
    # Imported late: few extensions add a server.
    from codeloop.extend.mcp.definition import CONTAINER_PROGRAMS

    return PurePath(first).name in CONTAINER_PROGRAMS


def _tighten(value: object, before: object) -> object:
    """Return rules without those that allow something new; None for nothing."""
    if value == before:
        return value
    if is_object(value):
        old = before if is_object(before) else {}
        rules = {name: _tighten(each, old.get(name)) for name, each in value.items()}
        return {name: each for name, each in rules.items() if each is not None}
    if is_list(value):
        old_items = before if is_list(before) else []
        return [each for each in value if each in old_items or not _allows(each)]
    return before if value in ("allow", True) else value


def _allows(rule: object) -> bool:
    """Return whether an item of a list of rules, in our form or that of OpenCode 2,
    allows something.
    """
    return is_object(rule) and "allow" in (rule.get("action"), rule.get("effect"))
