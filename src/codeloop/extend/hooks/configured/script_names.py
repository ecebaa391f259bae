"""Translates names of tools and arguments between codeloop and hook scripts written for Claude Code."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from codeloop.kit.paths import expand_user_path
from codeloop.kit.wildcard import matches, overlaps
from codeloop.permission.shell.analysis import analyse
from codeloop.schema.wire import JSON

# Our name of a tool -> its names in Claude Code's scripts: the first is sent, and matchers may use any.
_SCRIPT_NAMES: dict[str, tuple[str, ...]] = {
    "bash": ("Bash",),
    "read": ("Read",),
    "edit": ("Edit",),
    "multiedit": ("MultiEdit", "Edit"),
    "write": ("Write",),
    "apply_patch": ("Edit", "Write", "MultiEdit"),
    "glob": ("Glob",),
    "grep": ("Grep",),
    "list": ("LS",),
    "webfetch": ("WebFetch",),
    "websearch": ("WebSearch",),
    "todowrite": ("TodoWrite",),
    "task": ("Task", "Agent"),
    "task_output": ("TaskOutput", "AgentOutputTool"),
    "bash_output": ("BashOutput",),
    "bash_kill": ("KillShell", "KillBash"),
    "plan_exit": ("ExitPlanMode",),
    "question": ("AskUserQuestion",),
    "skill": ("Skill",),
    "lsp": ("LSP",),
}
_SCRIPT_ARGUMENTS = {
    "filePath": "file_path",
    "oldString": "old_string",
    "newString": "new_string",
    "replaceAll": "replace_all",
    "patchText": "patch",
}
_OWN_ARGUMENTS = {theirs: ours for ours, theirs in _SCRIPT_ARGUMENTS.items()}
_PATCH_PATH = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$", re.MULTILINE)
# A hook is called once for each file of a patch, up to this number.
_MAX_PATCH_FILES = 50
# Matches `Bash` and `Bash(git *)`.
_CONDITION = re.compile(r"([^()\s]+?)(?:\((.*)\))?", re.DOTALL)
# Matches `Bash` and `Edit|Write`: names, not a regular expression.
_PLAIN_MATCHER = re.compile(r"[\w-]+(?:\|[\w-]+)*")


def list_script_names(tool: str, server: tuple[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of a tool in scripts; the first is sent to them. `server`: an MCP server and its tool."""
    names = _SCRIPT_NAMES.get(tool, ())
    if server is None:
        return (*names, tool)
    server_name, server_tool = server
    return (*names, f"mcp__{server_name}__{server_tool}", tool)


def matches_name(matcher: str, names: Iterable[str]) -> bool:
    """Return whether a matcher matches any of the names: all of them (empty, `*`), `A|B`, or a regular expression."""
    if matcher.strip() in {"", "*"}:
        return True
    if _PLAIN_MATCHER.fullmatch(matcher):
        return not set(matcher.split("|")).isdisjoint(names)
    expression = _compile_matcher(matcher)
    return any(expression.fullmatch(name) if expression is not None else name == matcher for name in names)


def matches_call(condition: str, names: Iterable[str], tool_input: JSON) -> bool:
    """Return whether a condition such as `Bash(git *)` or `Edit(*.py)` matches a call; in doubt, True.

    It compares each simple command of a line, the path of a file tool, the host of an address.
    """
    match = _CONDITION.fullmatch(condition.strip())
    if not condition.strip() or match is None:
        return True
    if not matches_name(match[1], names):
        return False
    pattern = match[2]
    if pattern is None:
        return True
    if isinstance(command := tool_input.get("command"), str):
        # `git:*` is Claude Code's older form of `git *`.
        pattern = f"{pattern.removesuffix(':*')} *" if pattern.endswith(":*") else pattern
        analysis = analyse(command)
        # The whole line and each command in it: `cd x && git push` must not slip past `Bash(git *)`.
        texts = (command, *analysis.commands)
        return any(matches(text, pattern) for text in texts) or any(
            overlaps(each, pattern) for each in analysis.possible_commands
        )
    if isinstance(url := tool_input.get("url"), str) and pattern.startswith("domain:"):
        return matches(urlsplit(url).hostname or "", pattern.removeprefix("domain:"))
    path = tool_input.get("file_path", tool_input.get("path"))
    # In doubt the hook runs: one that was left out could not refuse.
    if not isinstance(path, str):
        return True
    return matches(path, pattern) or matches(path, f"*/{pattern.removeprefix('./').lstrip('/')}")


@cache
def _compile_matcher(matcher: str) -> re.Pattern[str] | None:
    """Compile a matcher; None when it is invalid, so that it is compared literally."""
    try:
        return re.compile(matcher)
    except re.error:
        return None


def convert_to_script_inputs(tool: str, arguments: JSON, directory: Path) -> list[JSON]:
    """Return a call's arguments in scripts' form: absolute paths; a patch once for each changed file."""
    names = _SCRIPT_ARGUMENTS if tool in _SCRIPT_NAMES else {}
    inputs = {names.get(name, name): value for name, value in arguments.items()}
    if tool == "apply_patch":
        files = _PATCH_PATH.findall(str(arguments.get("patchText", "")))[:_MAX_PATCH_FILES]
        return [{**inputs, "file_path": str(directory / file)} for file in files] or [inputs]
    if isinstance(path := inputs.get("file_path"), str):
        # No path of the file system holds a NUL, and resolving it would raise.
        inputs["file_path"] = str(directory / expand_user_path(path)) if "\0" not in path else path
    return [inputs]


def convert_from_script_input(tool: str, arguments: JSON) -> JSON:
    """Translate the arguments returned by a script to our names."""
    if tool not in _SCRIPT_NAMES:
        return arguments
    return {_OWN_ARGUMENTS.get(name, name): value for name, value in arguments.items()}
