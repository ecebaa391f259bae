"""Translates names of tools and arguments between codeloop and hook scripts
written for Claude Code.
"""

import re
from pathlib import Path

from codeloop.kit.paths import expand_user_path
from codeloop.schema.wire import JSON

# Our name of a tool -> its names in Claude Code's scripts: the first is sent,
# and matchers may use any.
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
_PATCH_PATH = r"(?m)^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$"
# A hook is called once for each file of a patch, up to this number.
_MAX_PATCH_FILES = 50


def list_script_names(tool: str, server: tuple[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of a tool in scripts; the first is sent to them.
    `server`: an MCP server and its tool.
    """
    names = _SCRIPT_NAMES.get(tool, ())
    if server is None:
        return (*names, tool)
    server_name, server_tool = server
    return (*names, f"mcp__{server_name}__{server_tool}", tool)


def convert_to_script_inputs(tool: str, arguments: JSON, directory: Path) -> list[JSON]:
    """Return a call's arguments in scripts' form: absolute paths;
    a patch once for each changed file.
    """
    names = _SCRIPT_ARGUMENTS if tool in _SCRIPT_NAMES else {}
    inputs = {names.get(name, name): value for name, value in arguments.items()}
    if tool == "apply_patch":
        files = re.findall(_PATCH_PATH, str(arguments.get("patchText", "")))[:_MAX_PATCH_FILES]
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
