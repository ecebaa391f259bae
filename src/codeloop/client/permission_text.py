"""A permission request in words: what will happen, by which tool, for whom, and what `always` allows.

Every row of foreign text (a command, a diff) has a mark, so that nothing in it can pass for the question itself. Of a
long text so much is shown that the question stays on the screen, and the number of lines that are left out.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import cast

import msgspec
from msgspec import Struct

from codeloop.client.numbers import Look, format_cost, width_of
from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.wire import JSON

MARK, WRAP_MARK = "  │ ", "  ┆ "
CUT = "  … "
EVERYTHING = 5_000
"""Rows that are shown of a text when all is asked for."""
LABEL = 80
_NAMES = 5
_NEEDS, _ALSO = 8, 3
"""What else an answer decides: that many are shown, each in that many rows."""
_REASON = 3
"""Rows of why a command is to run outside the sandbox, in the model's words."""
_FILE = re.compile("^Index: ", re.MULTILINE)
DOUBTFUL, KEEP, REMOTE = "uncertain", "kept", "remote"


class Asking(Struct, frozen=True):
    """Who asks: the tool, and the subagent if it is one; empty if unknown."""

    tool: str = ""
    subagent: str = ""


class RequestText(Struct, frozen=True):
    """A request: its title, the rows of what it is about, each with its look, and what `always` would allow."""

    title: str
    rows: list[tuple[Look, str]]
    always: str

    @property
    def is_cut(self) -> bool:
        """Whether the rows leave something out."""
        return any(row.startswith(CUT) for _, row in self.rows)


def in_words(request: PermissionRequest, asking: Asking, columns: int, most: int) -> RequestText:
    """Return a request in words, in rows of at most `columns`, `most` of them for a foreign text."""
    what = _TITLES.get(request.permission, _ask_other)(request, asking)
    by = f" ({asking.tool})" if asking.tool else ""
    whom = f", for the {asking.subagent}" if asking.subagent else ""
    rows = list(_rows(request, columns, most))
    remote = request.metadata.get(REMOTE)
    if isinstance(remote, list) and remote:
        first = one_line(str(cast("list[object]", remote)[0]).replace("\n", "⏎"), LABEL)
        rows += _warning(f"It acts on another machine or service: {first}", columns)
    if request.metadata.get(DOUBTFUL):
        rows += _warning("Its full effect can't be known before it runs.", columns)
    if request.metadata.get("agreed"):
        rows += _warning("The page is allowed. Its name was looked up only then, and leads to this address.", columns)
    if request.metadata.get(KEEP):
        rows.append(("dim", "  Once allowed, it is not asked about again in this session."))
    always = f"\n     {WRAP_MARK.strip()} ".join(_wrap(describe_always(request), max(columns - 15, 20)))
    return RequestText(f"{what}{by}{whom}", rows, always)


def _warning(text: str, columns: int) -> Iterator[tuple[Look, str]]:
    for line in wrap(text, max(columns - 3, 20)):
        yield "yellow", f"  {line}"


def mark_rows(text: str, columns: int, most: int) -> list[str]:
    """Return a text as at most `most` rows with marks; a long line is wrapped and marked as such.

    Of a longer text the beginning, the end and the number of lines between them are shown.
    """
    room = max(columns - len(MARK) - 1, 20)
    lines = text.rstrip("\n").split("\n")
    head, tail = list[str](), list[str]()
    for line in lines:
        if len(head) > most:
            break
        head += _rows_of(line[: room * (most + 1)], room)
    if len(head) <= most:
        return head
    ending = most // 3
    for line in reversed(lines):
        if len(tail) >= ending:
            break
        tail = _rows_of(line[-room * (most + 1) :], room) + tail
    rows = [*head[: most - ending - 1], *tail[len(tail) - ending :]]
    left_out = len(lines) - sum(row.startswith(MARK) for row in rows)
    between = f"{left_out:,} more line{'' if left_out == 1 else 's'}" if left_out > 0 else "more of this line"
    return [*rows[: most - ending - 1], CUT + between, *rows[most - ending - 1 :]]


def _rows_of(line: str, room: int) -> list[str]:
    first, *more = _wrap(escape_controls(line).expandtabs(4), room)
    return [MARK + first, *(WRAP_MARK + piece for piece in more)]


def _wrap(line: str, room: int) -> list[str]:
    """Return a line in pieces of at most `room` cells that end after a space or a wide character, if there is one."""
    pieces, start, used = list[str](), 0, 0
    chance = used_there = 0
    for at, char in enumerate(line):
        wide = width_of(char)
        if used + wide > room:
            stop, used = (chance, used - used_there) if line[start:chance].strip() else (at, 0)
            pieces.append(line[start:stop])
            start = chance = stop
            used_there = 0
        used += wide
        if char == " " or wide == 2:
            chance, used_there = at + 1, used
    return [*pieces, line[start:]]


def _rows(request: PermissionRequest, columns: int, most: int) -> Iterator[tuple[Look, str]]:
    """Yield the rows below the title: names that it can't hold, and the diff, the command or the call."""
    metadata = request.metadata
    also = _other_details(metadata)
    most = max(most - len(also), _REASON)
    command, diff, call = metadata.get("command"), metadata.get("diff"), metadata.get("input")
    if isinstance(doubt := metadata.get("doubt"), str):
        for row in mark_rows(f"asked although a rule lets it out, since {doubt}", columns, _REASON):
            yield "dim", row
    if isinstance(reason := metadata.get("reason"), str):
        for row in mark_rows(f"because: {reason}", columns, _REASON):
            yield "dim", row
    if (
        (request.permission not in {"bash", "sandbox"} or "keep" in metadata)
        and not _fits(request.patterns)
        and (not diff or len(request.patterns) == 1)
    ):
        yield from _bold("\n".join(pattern.replace("\n", "⏎") for pattern in request.patterns), columns, most)
    if isinstance(diff, str) and diff:
        yield from _diff(diff, request.patterns, columns, most)
    elif isinstance(command, str) and command:
        yield from _bold(command, columns, most)
    elif isinstance(call, dict):
        values = cast("JSON", call)
        own = values.get("command")
        text = own if isinstance(own, str) and set(values) <= {"command", "description"} else _readable(values)
        yield from _bold(text, columns, most)
    elif request.permission == "bash":
        yield from _bold("\n".join(request.patterns), columns, most)
    if isinstance(workdir := metadata.get("workdir"), str) and workdir:
        also = [f"in {workdir}", *also]
    for line in also:
        for row in mark_rows(line.replace("\n", "⏎"), columns, _ALSO):
            yield "dim", row


def _other_details(data: JSON) -> list[str]:
    """Return the other things that the answer decides, without the command, which is shown."""
    also = data.get("also")
    lines = [str(line) for line in cast("list[object]", also)] if isinstance(also, list) else []
    others = [f"also {line}" for line in lines if not line.startswith("bash: ")]
    return others if len(others) <= _NEEDS else [*others[: _NEEDS - 1], f"also {len(others) - _NEEDS + 1} more"]


def _fits(names: Sequence[str]) -> bool:
    """Return whether a title can hold the names as they are."""
    return len(names) <= _NAMES and all(len(escape_controls(name[:LABEL])) <= LABEL >= len(name) for name in names)


def _bold(text: str, columns: int, most: int) -> Iterator[tuple[Look, str]]:
    for row in mark_rows(text, columns, most):
        yield "bold", row


def _readable(call: JSON) -> str:
    """Return a call's arguments as JSON, texts of several lines below it as they are."""
    texts = {name: value for name, value in call.items() if isinstance(value, str) and "\n" in value.strip("\n")}
    rest = {name: value for name, value in call.items() if name not in texts}
    pieces = [msgspec.json.format(msgspec.json.encode(rest), indent=2).decode()] if rest or not texts else []
    return "\n".join([*pieces, *(f"{name}:\n{value}" for name, value in texts.items())])


def _diff(diff: str, paths: list[str], columns: int, most: int) -> Iterator[tuple[Look, str]]:
    files = _FILE.split(diff)[1:] or [diff]
    rows: list[str] = []
    for file in files:
        name, _, rest = file.partition("\n")
        if len(files) > 1:
            path = next((path for path in paths if name == path or name.endswith(f"/{path}")), name)
            rows.append(path.replace("\n", "⏎"))
        rows.append((rest[rest.find("@@") :] if "@@" in rest else rest).rstrip("\n"))
    look: Look = "dim"
    for row in mark_rows("\n".join(rows), columns, most):
        if row.startswith(MARK):
            sign = row[len(MARK) :][:1]
            look = (
                "green" if sign == "+" else "red" if sign == "-" else "dim" if sign in {" ", "@", "\\", ""} else "bold"
            )
        yield look, row


def describe_always(request: PermissionRequest) -> str:
    """Describe what "always" will allow, where, and for which directory; "": it is not offered."""
    if not request.always:
        return ""
    workdir = request.metadata.get("workdir")
    where = f"in {one_line(workdir, LABEL)}" if isinstance(workdir, str) and workdir else "in this directory"
    if request.always == ["*"]:
        return f"{_EVERYTHING.get(request.permission, f'every {request.permission}')} {where}"
    names = _list_names(request.always, "`{}`")
    address = request.metadata.get("address")
    names += f" while it is {one_line(address, LABEL)}," if isinstance(address, str) and address else ""
    return f"{_EVERY.get(request.permission, 'every')} {names} {where}"


def _list_patterns(request: PermissionRequest) -> str:
    return _list_names(request.patterns)


def _list_names(names: Sequence[str], form: str = "{}") -> str:
    text = ", ".join(form.format(one_line(name.replace("\n", "⏎"), LABEL)) for name in names[:_NAMES])
    return f"{text} and {len(names) - _NAMES} more" if len(names) > _NAMES else text


def _sandbox(request: PermissionRequest, _asking: Asking) -> str:
    resource = request.metadata.get("keep")
    return f"Keep {one_line(resource, LABEL)}" if isinstance(resource, str) else "Run a command outside the sandbox"


def _edit(request: PermissionRequest, _asking: Asking) -> str:
    if "keep" in request.metadata:
        return _sandbox(request, _asking)
    if "command" in request.metadata:
        return f"Run a command that may change {_list_patterns(request)}"
    if len(request.patterns) > 1:
        return f"Change {len(request.patterns)} files"
    return f"{_name_effect(str(request.metadata.get('diff') or ''))} {_list_patterns(request)}"


def _name_effect(diff: str) -> str:
    """Return "Create", "Change" or "Delete": the effect of a diff of one file."""
    first = diff.partition("@@ ")[2]
    if first.startswith("-0,0"):
        return "Create"
    return "Delete" if first.partition(" ")[2].startswith("+0,0") else "Change"


def _read(request: PermissionRequest, _asking: Asking) -> str:
    return f"{'Run a command that reads' if 'command' in request.metadata else 'Read'} {_list_patterns(request)}"


def _ask_outside(request: PermissionRequest, asking: Asking) -> str:
    if "command" in request.metadata:
        if request.patterns == ["*"]:
            return "Run a command of which it is not known which files it uses"
        folders = _list_names([pattern.removesuffix("*") for pattern in request.patterns])
        return f"Run a command that works outside the project, in {folders}"
    path, diff, files = (request.metadata.get(key) for key in ("filepath", "diff", "files"))
    where = one_line(path, LABEL) if isinstance(path, str) else _list_patterns(request)
    if isinstance(files, list) and len(cast("list[object]", files)) > 1:
        count = len(cast("list[object]", files))
        return f"Change {count} files, of which this is outside the project: {where}"
    verb = _name_effect(diff) if isinstance(diff, str) and diff else _VERBS.get(asking.tool, "Use")
    return f"{verb} {where}, outside the project"


def _fetch(request: PermissionRequest, _asking: Asking) -> str:
    redirect = request.metadata.get("redirect")
    first = one_line(str(redirect or request.metadata.get("url") or request.patterns[0]), 200)
    return f"Fetch {first}" + (", where the page redirects" if redirect else "")


def _private(request: PermissionRequest, _asking: Asking) -> str:
    address = one_line(str(request.metadata.get("address", "")), LABEL)
    url = one_line(str(request.metadata.get("url") or request.patterns[0]), 200)
    return f"Fetch {url} from an address that is not public, {address}"


def _task(request: PermissionRequest, _asking: Asking) -> str:
    about = one_line(str(request.metadata.get("description") or ""), LABEL)
    return f"Start the subagent {_list_patterns(request)}" + (f": {about}" if about else "")


def _repeat(request: PermissionRequest, _asking: Asking) -> str:
    what = str(request.metadata.get("tool") or _list_patterns(request))
    return f"Repeat the same call a third time: {one_line(what, LABEL)}"


def _fan_out(request: PermissionRequest, _asking: Asking) -> str:
    """Return how many subagents are to start, and what that may cost."""
    metadata = request.metadata
    models = _list_names([str(each) for each in cast("list[object]", metadata.get("models") or [])])
    cost = metadata.get("cost")
    price = f"about {format_cost(cost)}" if isinstance(cost, int | float) else "cost not known yet"
    return (
        f"Start {metadata.get('more')} more subagents after the first {metadata.get('started')}, with {models}; {price}"
    )


def _ask_about_server(request: PermissionRequest, _asking: Asking) -> str:
    return f"Use the MCP server {_list_patterns(request)}, which is not what you agreed to"


def _sampling(request: PermissionRequest, _asking: Asking) -> str:
    return f"Let the MCP server {_list_patterns(request)} ask your model"


def _ask_other(request: PermissionRequest, _asking: Asking) -> str:
    patterns = "" if request.patterns == ["*"] else f": {_list_patterns(request)}"
    return f"Use {one_line(request.permission, LABEL)}{patterns}"


def _saying(start: str, *, has_name: bool = True) -> Callable[[PermissionRequest, Asking], str]:
    return lambda request, _: f"{start} {_list_patterns(request)}" if has_name else start


_TITLES: dict[str, Callable[[PermissionRequest, Asking], str]] = {
    "bash": _saying("Run a command", has_name=False),
    "sandbox": _sandbox,
    "edit": _edit,
    "read": _read,
    "list": _saying("List the folder"),
    "glob": _saying("Find files by the pattern"),
    "grep": _saying("Search in files for"),
    "external_directory": _ask_outside,
    "webfetch": _fetch,
    "webfetch_private": _private,
    "websearch": _saying("Search the web for"),
    "task": _task,
    "skill": _saying("Load the skill"),
    "doom_loop": _repeat,
    "subagents": _fan_out,
    "mcp_changed": _ask_about_server,
    "mcp_sampling": _sampling,
    "todowrite": _saying("Update the todo list", has_name=False),
    "todoread": _saying("Read the todo list", has_name=False),
    "question": _saying("Ask you a question", has_name=False),
    "plan_exit": _saying("Leave plan mode and carry out the plan", has_name=False),
}
_VERBS = {
    **dict.fromkeys(("read",), "Read"),
    **dict.fromkeys(("list",), "List"),
    **dict.fromkeys(("glob", "grep"), "Search"),
    **dict.fromkeys(("edit", "multiedit", "apply_patch"), "Change"),
    "write": "Write",
}
_EVERY = {
    "bash": "every",
    "external_directory": "every tool on every path of",
    "read": "reading",
    "skill": "loading",
    "doom_loop": "every repeated call of",
    "webfetch_private": "fetching from",
}
_EVERYTHING = {
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
