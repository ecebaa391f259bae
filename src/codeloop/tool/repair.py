"""Calls in the words of other agents: what is certainly meant, as a call of ours, and a line that says so."""

import re
import shlex
from contextlib import suppress
from typing import Any, cast

import msgspec

from codeloop.kit.suggest import near
from codeloop.schema.wire import JSON

NAMES: dict[str, str] = {
    "read": "readfile view viewfile openfile cat fileread",
    "edit": "strreplace stredit editfile replaceinfile searchreplace replacestring",
    "multiedit": "multieditfile",
    "write": "writefile createfile savefile filewrite writetofile",
    "apply_patch": "patch applydiff",
    "grep": "search searchfiles rg ripgrep grepsearch searchfilecontent searchtext",
    "glob": "find findfiles globfiles filesearch findfile",
    "list": "ls listfiles listdir listdirectory dir",
    "bash": "shell sh terminal exec execcommand runcommand runterminalcmd runshellcommand executecommand localshell",
    "bash_output": "shelloutput readoutput",
    "bash_kill": "killshell killbash",
    "webfetch": "fetch fetchurl readurl",
    "todowrite": "writetodos todo updatetodos",
    "task": "agent subagent dispatchagent",
    "question": "askuser askuserquestion askquestion",
}
"""What others call our tools, in small letters and without underscores."""

PARAMETERS: dict[str, str] = {
    "filePath": "path file filename targetfile absolutepath relativepath",
    "path": "directory dir folder directorypath dirpath searchpath root cwd filepath file targetdirectory",
    "oldString": "oldstr oldtext old search find",
    "newString": "newstr newtext new replace replacement",
    "replaceAll": "all",
    "content": "text contents filetext data",
    "patchText": "patch input diff",
    "pattern": "query regex regexp search searchterm globpattern",
    "include": "glob fileglob includepattern filepattern includes",
    "ignoreCase": "i caseinsensitive",
    "context": "c contextlines",
    "before": "b linesbefore",
    "after": "a linesafter",
    "mode": "outputmode",
    "command": "cmd script commandline",
    "workdir": "cwd workingdirectory dir directory",
    "run_in_background": "background isbackground",
    "offset": "startline start from",
    "limit": "maxlines numlines count",
    "id": "bashid shellid jobid",
    "task_id": "id taskid sessionid",
    "subagent_type": "agent subagent",
    "prompt": "instructions",
    "url": "uri link",
    "todos": "items list",
}
"""What others call our parameters, in small letters and without underscores; each counts where ours exists."""

_VALUES = {
    "files_with_matches": "files",
    "files_only": "files",
    "done": "completed",
    "complete": "completed",
    "finished": "completed",
    "todo": "pending",
    "open": "pending",
    "not_started": "pending",
    "doing": "in_progress",
    "active": "in_progress",
    "started": "in_progress",
    "canceled": "cancelled",
    "skipped": "cancelled",
    "normal": "medium",
    "urgent": "high",
    "critical": "high",
}
_LINES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("offset", "startline", "linestart", "start", "from"), ("first",)),
    **dict.fromkeys(("endline", "lineend", "end", "to"), ("last",)),
    **dict.fromkeys(("viewrange", "linerange", "lines", "range"), ("first", "last")),
}
"""What others call the lines to read -> which of them it gives."""
_FENCE = re.compile(r"\s*```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL)
_SECONDS = 1000  # no timeout in ms is as short


def meant_tool(name: str, known: list[str]) -> str | None:
    """Return which of the known tools a name stands for; None when that is not certain."""
    folded = _folded(re.split(r"[./:]|__", name.strip())[-1])
    same = [ours for ours in known if folded == _folded(ours)]
    found = same or [ours for ours in known if folded in NAMES.get(ours, "").split()]
    return found[0] if len(found) == 1 else None


def meant_text(arguments: str, schema: JSON) -> str:
    """Return the JSON object in what a model sent: none at all, in a code block, or as a JSON text."""
    if not arguments.strip() and "required" not in schema:
        return "{}"
    if arguments.startswith('"{'):
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(arguments, type=str)
    found = _FENCE.fullmatch(arguments)
    return found[1] if found else arguments


def meant_parameters(given: JSON, schema: JSON, notes: list[str]) -> JSON:
    """Return an object in the words of its schema; what was taken for what, and what was left out, goes to `notes`."""
    properties: dict[str, JSON] = schema.get("properties", {})
    meant: JSON = {name: value for name, value in given.items() if name in properties}
    for name, value in given.items():
        if name in properties:
            continue
        ours = _meant_name(name, [each for each in properties if each not in meant], schema.get("required", []))
        if ours is None:
            notes.append(f"there is no parameter `{name}`")
            continue
        meant[ours] = value
        if _folded(name) != _folded(ours):
            notes.append(f"`{name}` was taken for `{ours}`")
    return {name: _meant_value(value, properties[name], notes) for name, value in meant.items()}


def _meant_name(name: str, free: list[str], required: list[str]) -> str | None:
    folded = _folded(name)
    for ours in free:
        if folded == _folded(ours) or folded in PARAMETERS.get(ours, "").split():
            return ours
    close = near(name, [ours for ours in free if ours in required])
    return close[0] if len(close) == 1 else None


def _meant_value(value: Any, schema: JSON, notes: list[str]) -> Any:
    if isinstance(value, str) and schema.get("type") == "array" and schema["items"].get("type") == "string":
        return value if value[:1] in {"[", "{"} else [value]
    if isinstance(value, str) and value not in schema.get("enum", [value]):
        folded = re.sub(r"[ -]", "_", value.strip().lower())
        meant = _VALUES.get(folded, folded)
        if meant not in schema["enum"]:
            return value
        notes += [f"`{value}` was taken for `{meant}`"] if meant != folded else []
        return meant
    if isinstance(value, list) and isinstance(schema.get("items"), dict) and "properties" in schema["items"]:
        inner: list[str] = []
        found = [
            meant_parameters(cast("JSON", item), schema["items"], inner) if isinstance(item, dict) else item
            for item in cast("list[Any]", value)
        ]
        notes += [note for note in dict.fromkeys(inner) if not note.startswith("there is no")]
        return found
    return cast("Any", value)


def meant_by_tool(tool: str, given: JSON, notes: list[str]) -> JSON:
    """Return the arguments of one of our tools with what only this tool can tell."""
    match tool, given:
        case "bash", {"command": [*words]} if words and all(isinstance(word, str) for word in words):
            inner = words[2] if len(words) == 3 and words[1] in {"-c", "-lc"} else shlex.join(words)
            given = {**given, "command": inner}
        case "read", _:
            return _with_lines(given)
        case "grep", {"-n": True}:  # lines are always numbered
            return {name: value for name, value in given.items() if name != "-n"}
        case _:
            pass
    if tool == "bash" and isinstance(timeout := given.get("timeout"), int) and 0 < timeout < _SECONDS:
        notes.append(f"timeout is in ms, so {timeout} was taken for {timeout} s")
        return {**given, "timeout": timeout * 1000}
    return given


def _with_lines(given: JSON) -> JSON:
    """Return first and last lines, as others name them, as offset and limit; one without an end: to the last."""
    found: dict[str, int] = {}
    names: set[str] = set()
    for name, value in given.items():
        numbers = [int(number) for number in re.findall(r"\d{1,9}", str(value))]
        ends = _LINES.get(_folded(name), ())
        if ends and len(ends) == len(numbers):
            found.update(zip(ends, numbers, strict=True))
            names.add(name)
    if "last" not in found or "limit" in given:
        return given
    first = max(found.get("first", 1), 1)
    meant = {name: value for name, value in given.items() if name not in names} | {"offset": first}
    return meant | {"limit": found["last"] - first + 1} if found["last"] >= first else meant


def signature(name: str, schema: JSON) -> str:
    """Return what a tool takes, short: `read(filePath: string, offset?: integer)`."""
    return f"{name}({_members(schema)})"


def _members(schema: JSON) -> str:
    required = schema.get("required", [])
    properties: dict[str, JSON] = schema.get("properties", {})
    return ", ".join(f"{key}{'' if key in required else '?'}: {_type(each)}" for key, each in properties.items())


def _type(schema: JSON) -> str:
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if schema.get("type") == "array":
        return f"[{_type(schema.get('items', {}))}]"
    if "properties" in schema:
        return f"{{{_members(schema)}}}"
    return str(schema.get("type", "any"))


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
