"""Translates calls that use the names of other agents' tools, parameters and values,
when their meaning is certain.

`aliases.py` has the names. A translation that the model should learn of adds a note for it.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast

import msgspec

from codeloop.kit.text.suggest import find_similar
from codeloop.schema.limits import WEB_TIMEOUT_MAX
from codeloop.schema.tool_names import EDITOR_TOOL_NAMES, TOOL_ALIASES, fold_name
from codeloop.schema.wire import JSON
from codeloop.tool.repair.aliases import (
    EDITOR_COMMANDS,
    LINE_RANGE_ALIASES,
    PARAMETER_ALIASES,
    VALUE_ALIASES,
)

# Matches a URL as `<URL>` or as a markdown link.
_BRACKETED_LINK = r"(?:<|\[[^\]]*\]\()(https?://[^<>\s]+?)[>)]"
_APPEND_VALUES = frozenset({"a", "append", "true"})
# A smaller timeout of a parameter in ms was meant in seconds,
# and a larger one of a parameter in seconds in ms.
_MIN_MILLISECONDS = 1000
# The subagent that a call of `task` without a name is for, and the words of its title.
_ANY_TASK_AGENT = "general"
_TITLE_WORDS = 5


class CallNotSupported(ValueError):
    """A call asks for something that its tool can't do; the message says which call does it."""


def match_tool(name: str, tools: list[str]) -> str | None:
    """Return the tool that a name certainly means, one of `tools`; None: it is not certain."""
    # Names such as `functions.read` and `mcp__server__read` mean their last part.
    plain = fold_name(re.split(r"[./:]|__", name.strip())[-1])
    same_names = [tool for tool in tools if plain == fold_name(tool)]
    matches = same_names or [tool for tool in tools if plain in TOOL_ALIASES.get(tool, "").split()]
    return matches[0] if len(matches) == 1 else None


def translate_editor_call(name: str, arguments: JSON) -> tuple[str, JSON] | None:
    """Return the name of our tool, and its arguments,
    for a call of an editor tool that has several commands.

    None: it is no such call.
    """
    if fold_name(name) not in EDITOR_TOOL_NAMES or not isinstance(
        command := arguments.get("command"), str
    ):
        return None
    tool = EDITOR_COMMANDS.get(fold_name(command))
    return (
        (tool, {key: value for key, value in arguments.items() if key != "command"})
        if tool
        else None
    )


def repair_parameters(arguments: JSON, schema: JSON, notes: list[str]) -> JSON:
    """Return arguments with keys and values renamed to those of the schema;
    renamed and dropped ones are noted.
    """
    properties: dict[str, JSON] = schema.get("properties", {})
    renamed: JSON = {name: value for name, value in arguments.items() if name in properties}
    for name, value in arguments.items():
        if name in properties:
            continue
        parameter = _match_name(
            name, [each for each in properties if each not in renamed], schema.get("required", [])
        )
        if parameter is None:
            notes.append(f"there is no parameter `{name}`")
            continue
        renamed[parameter] = value
        if fold_name(name) != fold_name(parameter):
            notes.append(f"`{name}` was taken for `{parameter}`")
    return {name: _repair_value(value, properties[name], notes) for name, value in renamed.items()}


def _match_name(name: str, free: list[str], required: list[str]) -> str | None:
    """Return the parameter, one of `free`, that a name certainly means; None: it is not certain."""
    plain = fold_name(name)
    for parameter in free:
        if plain == fold_name(parameter) or plain in PARAMETER_ALIASES.get(parameter, "").split():
            return parameter
    # A misspelling is only certain for a required parameter, which the call would lack otherwise.
    similar = find_similar(name, [parameter for parameter in free if parameter in required])
    return similar[0] if len(similar) == 1 else None


def _repair_value(value: Any, schema: JSON, notes: list[str]) -> Any:
    """Return a value in the form of its schema if its meaning is certain;
    other values stay as they are.
    """
    if (
        isinstance(value, str)
        and schema.get("type") == "array"
        and schema["items"].get("type") == "string"
    ):
        return value if value[:1] in {"[", "{"} else [value]
    if isinstance(value, str) and value not in schema.get("enum", [value]):
        plain = fold_name(value)
        known_value = {fold_name(choice): choice for choice in schema["enum"]}.get(
            fold_name(VALUE_ALIASES.get(plain, plain))
        )
        if known_value is None:
            return value
        if fold_name(known_value) != plain:
            notes.append(f"`{value}` was taken for `{known_value}`")
        return known_value
    if schema.get("type") == "string" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if schema.get("type") == "string" and isinstance(value, list):
        texts = cast("list[Any]", value)
        return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else texts
    items: JSON | None = schema.get("items")
    if not isinstance(items, dict) or "properties" not in items:
        return cast("Any", value)
    if isinstance(value, dict) and items["properties"].keys() & value:
        value = [cast("Any", value)]
    if isinstance(value, list):
        item_notes: list[str] = []
        repaired_items = [
            repair_parameters(cast("JSON", item), items, item_notes)
            if isinstance(item, dict)
            else item
            for item in cast("list[Any]", value)
        ]
        # Items may have fields of other agents, which are dropped: a note on
        # each would say too much.
        notes += [note for note in dict.fromkeys(item_notes) if not note.startswith("there is no")]
        return repaired_items
    return cast("Any", value)


def repair_for_tool(tool: str, arguments: JSON, notes: list[str]) -> JSON:
    """Apply the rules of one tool to the arguments of a call. Raises CallNotSupported."""
    match tool, arguments:
        case "bash", {"command": [*words]} if words and all(
            isinstance(word, str) for word in words
        ):
            arguments = {**arguments, "command": _join_command(cast("list[str]", words), notes)}
        case "read", _:
            return _repair_line_range(_repair_file_list(arguments, notes))
        case "grep", {"-n": True}:
            # The lines are always numbered.
            return {name: value for name, value in arguments.items() if name != "-n"}
        case "glob", {"pattern": [str(), str(), *more]} if all(
            isinstance(each, str) for each in more
        ):
            arguments = {
                **arguments,
                "pattern": f"{{{','.join(cast('list[str]', arguments['pattern']))}}}",
            }
        case "apply_patch", {"command": ["apply_patch", str(patch)]}:
            arguments = {"patchText": patch}
        case "write", _ if (
            str(arguments.get("append", arguments.get("mode"))).lower() in _APPEND_VALUES
        ):
            # The text before the addition would be lost.
            raise CallNotSupported(
                "write replaces a whole file. To add to one, use edit, or `>>` in a command."
            )
        case "webfetch", {"method": str(method)} if method.upper() not in {"GET", "HEAD"}:
            raise CallNotSupported(
                f"webfetch only gets pages. For {method.upper()} use a command, such as curl."
            )
        case "webfetch", _:
            arguments = _repair_webfetch(arguments, notes)
        case "batch" | "edit" | "multiedit" | "task", _:
            arguments = _REPAIRS[tool](arguments, notes)
        case "question", {"question": str()} if not _has_parameter(arguments, "questions"):
            notes.append("`questions` is a list, here of one question")
            arguments = {"questions": [arguments]}
        case "todowrite", _:
            from codeloop.tool.repair.todos import repair_todos

            arguments = {name: repair_todos(value, notes) for name, value in arguments.items()}
        case _:
            pass
    if (
        tool == "bash"
        and isinstance(timeout := arguments.get("timeout"), int)
        and 0 < timeout < _MIN_MILLISECONDS
    ):
        notes.append(f"timeout is in ms, so {timeout} was taken for {timeout} s")
        return {**arguments, "timeout": timeout * 1000}
    return arguments


def _join_command(words: list[str], notes: list[str]) -> str:
    """Return the one command that a list means: its words, a shell with its script,
    or several commands.
    """
    if len(words) == 3 and words[1] in {"-c", "-lc"}:
        return words[2]
    if " " not in words[0].strip():
        from shlex import join

        return join(words)
    notes.append("`command` is one command: the commands of the list were joined by &&")
    return " && ".join(words)


def _repair_webfetch(arguments: JSON, notes: list[str]) -> JSON:
    """Return a call with the URL taken out of a link's brackets and the timeout in seconds,
    capped.
    """
    if isinstance(url := arguments.get("url"), str) and (
        link := re.fullmatch(_BRACKETED_LINK, url.strip())
    ):
        arguments = {**arguments, "url": link[1]}
    timeout, max_seconds = arguments.get("timeout"), int(WEB_TIMEOUT_MAX.seconds)
    if isinstance(timeout, int) and timeout > max_seconds:
        # So large a number is in ms, as the timeouts of other tools are.
        seconds = min(timeout / 1000, max_seconds) if timeout >= _MIN_MILLISECONDS else max_seconds
        notes.append(
            f"timeout is in seconds, at most {max_seconds}, so {timeout} was taken for {seconds:g} s"
        )
        arguments = {**arguments, "timeout": seconds}
    return arguments


def _repair_task(arguments: JSON, notes: list[str]) -> JSON:
    """Fill in what a call with nothing but the task leaves out: the agent for any task,
    and the task's first words.
    """
    prompt = arguments.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return arguments
    filled = {
        "description": " ".join(prompt.split()[:_TITLE_WORDS]),
        "subagent_type": _ANY_TASK_AGENT,
    }
    given = {name: value for name, value in arguments.items() if value is not None}
    missing = {name: value for name, value in filled.items() if not _has_parameter(given, name)}
    if "subagent_type" in missing:
        notes.append(f"no `subagent_type` was given, so {_ANY_TASK_AGENT} did it")
    return {**arguments, **missing}


def _repair_batch(arguments: JSON, _notes: list[str]) -> JSON:
    """Return the calls of a batch in our form. Other forms have arguments next to the name,
    or as JSON text.
    """
    if _has_parameter(arguments, "tool") and not _has_parameter(arguments, "tool_calls"):
        return {"tool_calls": [_repair_call(arguments)]}
    lists = {
        name: cast("list[Any]", value)
        for name, value in arguments.items()
        if isinstance(value, list)
    }
    return {
        **arguments,
        **{name: [_repair_call(each) for each in calls] for name, calls in lists.items()},
    }


def _repair_call(value: Any) -> Any:
    """Return one call of a batch in our form, from `{"function": {"name": ...,
    "arguments": "{...}"}}` and the like.
    """
    if not isinstance(value, dict):
        return value
    call = cast("JSON", value)
    if isinstance(inner := call.get("function"), dict):
        call = cast("JSON", inner)
    names = {_match_name(name, ["tool", "parameters"], []): name for name in call}
    if "tool" not in names:
        return call
    others = {name: each for name, each in call.items() if name != names["tool"] and name != "type"}
    inside: Any = call.get(names["parameters"]) if "parameters" in names else others or None
    with suppress(msgspec.DecodeError):
        inside = msgspec.json.decode(inside) if isinstance(inside, str) else inside
    return {"tool": call[names["tool"]], **({} if inside is None else {"parameters": inside})}


def _repair_line_range(arguments: JSON) -> JSON:
    """Translate other agents' first and last line (`"view_range": [10,
    20]`) to our `offset` and `limit`.
    """
    bounds: dict[str, int] = {}
    names: set[str] = set()
    for name, value in arguments.items():
        numbers = [int(number) for number in re.findall(r"\d{1,9}", str(value))]
        ends = LINE_RANGE_ALIASES.get(fold_name(name), ())
        if ends and len(ends) == len(numbers):
            bounds.update(zip(ends, numbers, strict=True))
            names.add(name)
    if "last" not in bounds or "limit" in arguments:
        return arguments
    first = max(bounds.get("first", 1), 1)
    others = {name: value for name, value in arguments.items() if name not in names} | {
        "offset": first
    }
    return others | {"limit": bounds["last"] - first + 1} if bounds["last"] >= first else others


def _has_parameter(arguments: JSON, parameter: str) -> bool:
    """Return whether one of the arguments is, or means, our parameter."""
    return any(_match_name(name, [parameter], []) for name in arguments)


def _repair_file_list(arguments: JSON, notes: list[str]) -> JSON:
    """Return the arguments of `read`; a list of one file becomes that file.
    Raises CallNotSupported for more files.
    """
    name = next(
        (each for each in arguments if fold_name(each) in {"filepaths", "paths", "files"}), None
    )
    files = arguments.get(name) if name is not None else None
    if not isinstance(files, list) or name is None or not files:
        return arguments
    paths = [str(each) for each in cast("list[Any]", files)]
    if len(paths) > 1:
        calls = ", ".join(f"read(filePath={path!r})" for path in paths[:5])
        raise CallNotSupported(
            f"read takes one file. Make a call for each, all in one step: {calls}."
        )
    notes.append(f"`{name}` was taken for `filePath`")
    return {**{key: value for key, value in arguments.items() if key != name}, "filePath": paths[0]}


def _repair_edits(tool: str, arguments: JSON, notes: list[str]) -> JSON:
    """Return the arguments of `edit` or `multiedit`: a path in each edit becomes `filePath`.

    A single edit of `multiedit` becomes a list.
    """
    if tool == "edit":
        return _repair_edit_paths(arguments) if _has_parameter(arguments, "edits") else arguments
    single_edit = {
        name: value
        for name, value in arguments.items()
        if _match_name(name, ["oldString", "newString", "replaceAll"], [])
    }
    if single_edit and not _has_parameter(arguments, "edits"):
        notes.append("`edits` is a list, here of one edit")
        return {
            **{name: value for name, value in arguments.items() if name not in single_edit},
            "edits": [single_edit],
        }
    return _repair_edit_paths(arguments)


def _repair_edit_paths(arguments: JSON) -> JSON:
    """Return the arguments with the path that stands in each edit as `filePath`.
    Raises CallNotSupported.
    """
    edits = arguments.get("edits")
    if isinstance(edits, list) and edits and not _has_parameter(arguments, "filePath"):
        objects = [
            cast("JSON", each) for each in cast("list[Any]", edits) if isinstance(each, dict)
        ]
        paths = {
            str(path)
            for each in objects
            for name, path in each.items()
            if _match_name(name, ["filePath"], [])
        }
        if len(paths) > 1:
            raise CallNotSupported(
                "The edits of a call change one file, `filePath`. Make a call for each file, all in one step."
            )
        return {**arguments, "filePath": paths.pop()} if paths else arguments
    return arguments


_REPAIRS: dict[str, Callable[[JSON, list[str]], JSON]] = {
    "batch": _repair_batch,
    "edit": partial(_repair_edits, "edit"),
    "multiedit": partial(_repair_edits, "multiedit"),
    "task": _repair_task,
}
"""The rules of tools whose calls need several."""
