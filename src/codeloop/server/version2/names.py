"""The names of tools, permissions and arguments in version 2, and ours: both ways. Pure."""

from codeloop.schema.wire import JSON

_TOOLS = {"bash": "shell", "task": "subagent", "apply_patch": "patch"}
"""Our tools that have another name in version 2."""
_OWN_TOOLS = {theirs: ours for ours, theirs in _TOOLS.items()}
_PATH_TOOLS = frozenset({"read", "edit", "write"})
"""The tools whose `filePath` is `path` in version 2."""


def rename_permission(permission: str) -> str:
    """Return version 2's name of a permission."""
    return _TOOLS.get(permission, permission)


def rename_call(tool: str, arguments: JSON) -> tuple[str, JSON]:
    """Return a call as version 2 names its tool and arguments."""
    if tool in _PATH_TOOLS and "filePath" in arguments:
        arguments = {
            "path" if name == "filePath" else name: value for name, value in arguments.items()
        }
    elif tool == "skill" and "name" in arguments:
        arguments = {"id" if name == "name" else name: value for name, value in arguments.items()}
    return _TOOLS.get(tool, tool), arguments


def read_call(tool: str, arguments: JSON) -> tuple[str, JSON]:
    """Return a call of version 2 as our tools are called."""
    tool = _OWN_TOOLS.get(tool, tool)
    if tool in _PATH_TOOLS and "path" in arguments:
        arguments = {
            "filePath" if name == "path" else name: value for name, value in arguments.items()
        }
    elif tool == "skill" and "id" in arguments:
        arguments = {"name" if name == "id" else name: value for name, value in arguments.items()}
    return tool, arguments
