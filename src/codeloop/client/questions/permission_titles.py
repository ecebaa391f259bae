"""Names what a permission request is for, as the title of a question,
and the effect of the answer "always".
"""

from collections.abc import Callable, Sequence
from typing import cast

from codeloop.client.formatting import format_cost
from codeloop.client.questions.requester import MAX_LABEL, Requester
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.permission import PermissionRequest

_MAX_NAMES = 5
"""The patterns that a title names."""
_MAX_ADDRESS = 200
"""Characters of a web address or a search in a title."""


def describe_action(request: PermissionRequest, requester: Requester) -> str:
    """Return the action that needs permission, such as "Read src/main.py, outside the project"."""
    return _TITLE_WRITERS.get(request.permission, _describe_other)(request, requester)


def can_stand_in_title(names: Sequence[str]) -> bool:
    """Return whether the names are few and short enough to be part of a title."""
    if len(names) > _MAX_NAMES:
        return False
    # Escaping makes a name longer. A name that is too long already is not escaped:
    # it may have megabytes.
    return all(len(name) <= MAX_LABEL and len(escape_controls(name)) <= MAX_LABEL for name in names)


def describe_always(request: PermissionRequest, *, for_session: bool = False) -> str:
    """Describe the effect of "always" and its directory; "": "always" is not offered.

    `for_session`: where the scope is named elsewhere, so that only a command's own directory is.
    """
    if not request.always:
        return ""
    workdir = request.metadata.get("workdir")
    where = "" if for_session else " in this project"
    where = f" in {one_line(workdir, MAX_LABEL)}" if isinstance(workdir, str) and workdir else where
    if request.always == ["*"]:
        return f"{_ALWAYS_EVERYTHING.get(request.permission, f'every {request.permission}')}{where}"
    names = _list_names(request.always, "`{}`")
    address = request.metadata.get("address")
    if isinstance(address, str) and address:
        names += f" while it is {one_line(address, MAX_LABEL)}{',' if where else ''}"
    return f"{_ALWAYS_PREFIXES.get(request.permission, 'every')} {names}{where}"


def _list_patterns(request: PermissionRequest) -> str:
    return _list_names(request.patterns)


def _list_names(names: Sequence[str], form: str = "{}") -> str:
    text = ", ".join(
        form.format(one_line(name.replace("\n", "⏎"), MAX_LABEL)) for name in names[:_MAX_NAMES]
    )
    return f"{text} and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else text


def _describe_sandbox(request: PermissionRequest, _requester: Requester) -> str:
    resource = request.metadata.get("keep")
    return (
        f"Keep {one_line(resource, MAX_LABEL)}"
        if isinstance(resource, str)
        else "Run a command outside the sandbox"
    )


def _describe_edit(request: PermissionRequest, requester: Requester) -> str:
    if "keep" in request.metadata:
        return _describe_sandbox(request, requester)
    if "command" in request.metadata:
        return f"Run a command that may change {_list_patterns(request)}"
    if len(request.patterns) > 1:
        return f"Change {len(request.patterns)} files"
    return f"{_describe_effect(str(request.metadata.get('diff') or ''))} {_list_patterns(request)}"


def _describe_effect(diff: str) -> str:
    """Return "Create", "Change" or "Delete": the effect of a diff of one file."""
    # A hunk of no lines before or after: the file does not exist on that side.
    first = diff.partition("@@ ")[2]
    if first.startswith("-0,0"):
        return "Create"
    return "Delete" if first.partition(" ")[2].startswith("+0,0") else "Change"


def _describe_read(request: PermissionRequest, _requester: Requester) -> str:
    return f"{'Run a command that reads' if 'command' in request.metadata else 'Read'} {_list_patterns(request)}"


def _describe_outside(request: PermissionRequest, requester: Requester) -> str:
    if "command" in request.metadata:
        if request.patterns == ["*"]:
            return "Run a command of which it is not known which files it uses"
        folders = [f"{pattern.rpartition('/')[0]}/" for pattern in request.patterns]
        where = _list_names([*dict.fromkeys(folders)])
        return f"Run a command that works outside the project, in {where}"
    path, diff, files = (request.metadata.get(key) for key in ("filepath", "diff", "files"))
    where = one_line(path, MAX_LABEL) if isinstance(path, str) else _list_patterns(request)
    if isinstance(files, list) and len(cast("list[object]", files)) > 1:
        count = len(cast("list[object]", files))
        return f"Change {count} files, of which this is outside the project: {where}"
    verb = (
        _describe_effect(diff)
        if isinstance(diff, str) and diff
        else _VERBS_BY_TOOL.get(requester.tool, "Use")
    )
    return f"{verb} {where}, outside the project"


def _describe_fetch(request: PermissionRequest, _requester: Requester) -> str:
    redirect = request.metadata.get("redirect")
    first = one_line(
        str(redirect or request.metadata.get("url") or request.patterns[0]), _MAX_ADDRESS
    )
    return f"Fetch {first}" + (", where the page redirects" if redirect else "")


def _describe_private_fetch(request: PermissionRequest, _requester: Requester) -> str:
    address = one_line(str(request.metadata.get("address", "")), MAX_LABEL)
    url = one_line(str(request.metadata.get("url") or request.patterns[0]), _MAX_ADDRESS)
    return f"Fetch {url} from an address that is not public, {address}"


def _describe_task(request: PermissionRequest, _requester: Requester) -> str:
    about = one_line(str(request.metadata.get("description") or ""), MAX_LABEL)
    return f"Start the subagent {_list_patterns(request)}" + (f": {about}" if about else "")


def _describe_repeat(request: PermissionRequest, _requester: Requester) -> str:
    action = str(request.metadata.get("tool") or _list_patterns(request))
    return f"Repeat the same call once more: {one_line(action, MAX_LABEL)}"


def _describe_fan_out(request: PermissionRequest, _requester: Requester) -> str:
    """Describe the number of subagents to start, their models, and their estimated cost."""
    metadata = request.metadata
    models = _list_names([str(each) for each in cast("list[object]", metadata.get("models") or [])])
    cost = metadata.get("cost")
    price = f"about {format_cost(cost)}" if isinstance(cost, int | float) else "cost not known yet"
    return (
        f"Start {metadata.get('more')} more subagents after the first "
        f"{metadata.get('started')}, with {models}; {price}"
    )


def _describe_changed_server(request: PermissionRequest, _requester: Requester) -> str:
    return (
        f"Use the MCP server {_list_patterns(request)} as it is now, which you have not agreed to"
    )


def _describe_sampling(request: PermissionRequest, _requester: Requester) -> str:
    return f"Let the MCP server {_list_patterns(request)} ask your model"


def _describe_server_places(request: PermissionRequest, _requester: Requester) -> str:
    places = ", ".join(map(str, request.metadata.get("places") or ()))
    return f"Let the MCP server {_list_patterns(request)} write to {one_line(places, MAX_LABEL)}, which it names"


def _describe_other(request: PermissionRequest, _requester: Requester) -> str:
    patterns = "" if request.patterns == ["*"] else f": {_list_patterns(request)}"
    return f"Use {one_line(request.permission, MAX_LABEL)}{patterns}"


def _make_title_writer(
    start: str, *, has_name: bool = True
) -> Callable[[PermissionRequest, Requester], str]:
    """Return a function that writes a title: `start`, and the request's patterns if `has_name`."""
    return lambda request, _: f"{start} {_list_patterns(request)}" if has_name else start


# By the permission that is asked for; every other one is named as it is.
_TITLE_WRITERS: dict[str, Callable[[PermissionRequest, Requester], str]] = {
    "bash": _make_title_writer("Run a command", has_name=False),
    "sandbox": _describe_sandbox,
    "edit": _describe_edit,
    "read": _describe_read,
    "list": _make_title_writer("List the folder"),
    "glob": _make_title_writer("Find files by the pattern"),
    "grep": _make_title_writer("Search in files for"),
    "external_directory": _describe_outside,
    "webfetch": _describe_fetch,
    "webfetch_private": _describe_private_fetch,
    "websearch": _make_title_writer("Search the web for"),
    "task": _describe_task,
    "skill": _make_title_writer("Load the skill"),
    "doom_loop": _describe_repeat,
    "subagents": _describe_fan_out,
    "mcp_changed": _describe_changed_server,
    "mcp_sampling": _describe_sampling,
    "mcp_write": _describe_server_places,
    "todowrite": _make_title_writer("Update the todo list", has_name=False),
    "todoread": _make_title_writer("Read the todo list", has_name=False),
    "question": _make_title_writer("Ask you a question", has_name=False),
    "plan_exit": _make_title_writer("Leave plan mode and carry out the plan", has_name=False),
}
# The effect of the tool on a path outside the project.
_VERBS_BY_TOOL = {
    "read": "Read",
    "list": "List",
    **dict.fromkeys(("glob", "grep"), "Search"),
    **dict.fromkeys(("edit", "multiedit", "apply_patch"), "Change"),
    "write": "Write",
}
# What "always" allows, in front of the patterns, by permission; "every" for one that is not here.
_ALWAYS_PREFIXES = {
    "external_directory": "every tool on",
    "edit": "changing",
    "read": "reading",
    "skill": "loading",
    "doom_loop": "every repeated call of",
    "webfetch_private": "fetching from",
}
# What "always" allows where its pattern is `*`, by permission.
_ALWAYS_EVERYTHING = {
    "edit": "every file change",
    "read": "reading any file that holds no keys",
    "list": "listing any folder",
    "glob": "every file search",
    "grep": "every search in files",
    "webfetch": "fetching any public page",
    "websearch": "every web search",
    "task": "starting any subagent",
    "todowrite": "updating the todo list",
    "todoread": "reading the todo list",
    "question": "every question",
    "plan_exit": "leaving plan mode",
}
