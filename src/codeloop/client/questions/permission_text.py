"""Describes permission requests for every user interface: action, tool, subagent, and the effect of "always".

Every row of quoted text (a command, a diff) begins with a mark, so that nothing in it can pass for the question itself.
A long text is cut, with the number of omitted lines, so that the question stays on the screen.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import cast

import msgspec
from msgspec import Struct

from codeloop.client.formatting import TextStyle, format_cost, measure_width
from codeloop.client.questions.requester import MAX_LABEL, Requester
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.wire import JSON

QUOTE_MARK, WRAP_MARK = "  │ ", "  ┆ "
CUT_MARK = "  … "
UNLIMITED_ROWS = 5_000
"""Rows of a quoted text that are shown when the user asks to see all of it."""
_MAX_NAMES = 5
_MAX_DETAILS, _DETAIL_ROWS = 8, 3
"""How many further effects of the answer are listed, and the rows of each."""
_REASON_ROWS = 3
"""Rows of the model's reason to run a command outside the sandbox."""
# Of the lines of a diff, by their first character; a line without one of these is the name of a file.
_STYLES_BY_SIGN: dict[str, TextStyle] = {"+": "green", "-": "red", " ": "dim", "@": "dim", "\\": "dim", "": "dim"}
_DIFF_FILE_HEADER = re.compile("^Index: ", re.MULTILINE)


class RequestText(Struct, frozen=True):
    """The texts of a request. `rows`: its details, each with its style. `always`: the effect of "always"."""

    title: str
    rows: list[tuple[TextStyle, str]]
    always: str

    @property
    def is_cut(self) -> bool:
        """Whether lines of a quoted text were omitted."""
        return any(row.startswith(CUT_MARK) for _, row in self.rows)


def describe_request(request: PermissionRequest, requester: Requester, columns: int, max_rows: int) -> RequestText:
    """Describe a request in rows of at most `columns`, with at most `max_rows` rows of quoted text."""
    action = _TITLE_WRITERS.get(request.permission, _describe_other)(request, requester)
    tool_suffix = f" ({requester.tool})" if requester.tool else ""
    subagent_suffix = f", for the {requester.subagent}" if requester.subagent else ""
    rows = list(_list_rows(request, columns, max_rows))
    remote = request.metadata.get("remote")
    if isinstance(remote, list) and remote:
        first = one_line(str(cast("list[object]", remote)[0]).replace("\n", "⏎"), MAX_LABEL)
        rows += _wrap_warning(f"It acts on another machine or service: {first}", columns)
    if request.metadata.get("uncertain"):
        rows += _wrap_warning("Its full effect can't be known before it runs.", columns)
    if request.metadata.get("agreed"):
        rows += _wrap_warning(
            "The page is allowed. Its name was looked up only then, and leads to this address.", columns
        )
    if request.metadata.get("kept"):
        rows.append(("dim", "  Once allowed, it is not asked about again in this session."))
    always = f"\n     {WRAP_MARK.strip()} ".join(_wrap_line(describe_always(request), max(columns - 15, 20)))
    return RequestText(f"{action}{tool_suffix}{subagent_suffix}", rows, always)


def _wrap_warning(text: str, columns: int) -> Iterator[tuple[TextStyle, str]]:
    for line in wrap(text, max(columns - 3, 20)):
        yield "yellow", f"  {line}"


def quote_text(text: str, columns: int, max_rows: int) -> list[str]:
    """Quote a text in at most `max_rows` rows; the rows of a wrapped line have a mark of their own.

    A longer text is cut in the middle, where a row has the number of omitted lines.
    """
    room = max(columns - len(QUOTE_MARK) - 1, 20)
    lines = text.rstrip("\n").split("\n")
    head, tail = list[str](), list[str]()
    for line in lines:
        if len(head) > max_rows:
            break
        # Cut before wrapping: a line may have megabytes.
        head += _quote_line(line[: room * (max_rows + 1)], room)
    if len(head) <= max_rows:
        return head
    # The end of a command may matter as much as its beginning, and must not be hidden by a long middle.
    tail_rows = max_rows // 3
    for line in reversed(lines):
        if len(tail) >= tail_rows:
            break
        tail = _quote_line(line[-room * (max_rows + 1) :], room) + tail
    rows = [*head[: max_rows - tail_rows - 1], *tail[len(tail) - tail_rows :]]
    omitted = len(lines) - sum(row.startswith(QUOTE_MARK) for row in rows)
    note = f"{omitted:,} more line{'' if omitted == 1 else 's'}" if omitted > 0 else "more of this line"
    return [*rows[: max_rows - tail_rows - 1], CUT_MARK + note, *rows[max_rows - tail_rows - 1 :]]


def _quote_line(line: str, room: int) -> list[str]:
    first, *rest = _wrap_line(escape_controls(line).expandtabs(4), room)
    return [QUOTE_MARK + first, *(WRAP_MARK + piece for piece in rest)]


def _wrap_line(line: str, room: int) -> list[str]:
    """Wrap a line into pieces of at most `room` cells, after a space or a wide character if there is one."""
    pieces, start, used = list[str](), 0, 0
    # The index after the last place where the piece may end, and the cells up to there.
    break_index = used_before_break = 0
    for index, char in enumerate(line):
        width = measure_width(char)
        if used + width > room:
            if line[start:break_index].strip():
                stop, used = break_index, used - used_before_break
            else:
                stop, used = index, 0
            pieces.append(line[start:stop])
            start = break_index = stop
            used_before_break = 0
        used += width
        if char == " " or width == 2:
            break_index, used_before_break = index + 1, used
    return [*pieces, line[start:]]


def _list_rows(request: PermissionRequest, columns: int, max_rows: int) -> Iterator[tuple[TextStyle, str]]:
    """Yield the rows below the title: names that it can't hold, then the diff, the command or the arguments."""
    metadata = request.metadata
    other_details = _list_other_details(metadata)
    max_rows = max(max_rows - len(other_details), _REASON_ROWS)
    command, diff, call = metadata.get("command"), metadata.get("diff"), metadata.get("input")
    if isinstance(doubt := metadata.get("doubt"), str):
        for row in quote_text(f"asked although a rule lets it out, since {doubt}", columns, _REASON_ROWS):
            yield "dim", row
    if isinstance(reason := metadata.get("reason"), str):
        for row in quote_text(f"because: {reason}", columns, _REASON_ROWS):
            yield "dim", row
    # A command is quoted itself, and a diff of several files names each of them.
    is_command = request.permission in {"bash", "sandbox"} and "keep" not in metadata
    shows_names = not is_command and (not diff or len(request.patterns) == 1)
    if shows_names and not _can_stand_in_title(request.patterns):
        yield from _quote_bold("\n".join(pattern.replace("\n", "⏎") for pattern in request.patterns), columns, max_rows)
    if isinstance(diff, str) and diff:
        yield from _quote_diff(diff, request.patterns, columns, max_rows)
    elif isinstance(command, str) and command:
        yield from _quote_bold(command, columns, max_rows)
    elif isinstance(call, dict):
        values = cast("JSON", call)
        shell_command = values.get("command")
        text = (
            shell_command
            if isinstance(shell_command, str) and set(values) <= {"command", "description"}
            else _format_arguments(values)
        )
        yield from _quote_bold(text, columns, max_rows)
    elif request.permission == "bash":
        yield from _quote_bold("\n".join(request.patterns), columns, max_rows)
    if isinstance(workdir := metadata.get("workdir"), str) and workdir:
        other_details = [f"in {workdir}", *other_details]
    for line in other_details:
        for row in quote_text(line.replace("\n", "⏎"), columns, _DETAIL_ROWS):
            yield "dim", row


def _list_other_details(metadata: JSON) -> list[str]:
    """Return lines about further effects of the answer, other than the command, which is quoted."""
    other_details = metadata.get("also")
    lines = [str(line) for line in cast("list[object]", other_details)] if isinstance(other_details, list) else []
    others = [f"also {line}" for line in lines if not line.startswith("bash: ")]
    if len(others) <= _MAX_DETAILS:
        return others
    return [*others[: _MAX_DETAILS - 1], f"also {len(others) - _MAX_DETAILS + 1} more"]


def _can_stand_in_title(names: Sequence[str]) -> bool:
    """Return whether the names are few and short enough to be part of a title."""
    if len(names) > _MAX_NAMES:
        return False
    # Escaping makes a name longer. A name that is too long already is not escaped: it may have megabytes.
    return all(len(name) <= MAX_LABEL and len(escape_controls(name)) <= MAX_LABEL for name in names)


def _quote_bold(text: str, columns: int, max_rows: int) -> Iterator[tuple[TextStyle, str]]:
    for row in quote_text(text, columns, max_rows):
        yield "bold", row


def _format_arguments(call: JSON) -> str:
    """Format the arguments of a call as JSON, and below it texts of several lines, unescaped."""
    texts = {name: value for name, value in call.items() if isinstance(value, str) and "\n" in value.strip("\n")}
    rest = {name: value for name, value in call.items() if name not in texts}
    pieces = [msgspec.json.format(msgspec.json.encode(rest), indent=2).decode()] if rest or not texts else []
    return "\n".join([*pieces, *(f"{name}:\n{value}" for name, value in texts.items())])


def _quote_diff(diff: str, paths: list[str], columns: int, max_rows: int) -> Iterator[tuple[TextStyle, str]]:
    """Quote the hunks of a diff in colours; a diff of several files names each file above its hunks."""
    files = _DIFF_FILE_HEADER.split(diff)[1:] or [diff]
    rows: list[str] = []
    for file in files:
        name, _, rest = file.partition("\n")
        if len(files) > 1:
            path = next((path for path in paths if name == path or name.endswith(f"/{path}")), name)
            rows.append(path.replace("\n", "⏎"))
        rows.append((rest[rest.find("@@") :] if "@@" in rest else rest).rstrip("\n"))
    style: TextStyle = "dim"
    for row in quote_text("\n".join(rows), columns, max_rows):
        if row.startswith(QUOTE_MARK):
            # The row of a wrapped line keeps the colour of its first row.
            sign = row[len(QUOTE_MARK) :][:1]
            style = _STYLES_BY_SIGN.get(sign, "bold")
        yield style, row


def describe_always(request: PermissionRequest) -> str:
    """Describe the effect of "always" and its directory; "": "always" is not offered."""
    if not request.always:
        return ""
    workdir = request.metadata.get("workdir")
    where = f"in {one_line(workdir, MAX_LABEL)}" if isinstance(workdir, str) and workdir else "in this directory"
    if request.always == ["*"]:
        return f"{_ALWAYS_EVERYTHING.get(request.permission, f'every {request.permission}')} {where}"
    names = _list_names(request.always, "`{}`")
    address = request.metadata.get("address")
    names += f" while it is {one_line(address, MAX_LABEL)}," if isinstance(address, str) and address else ""
    return f"{_ALWAYS_PREFIXES.get(request.permission, 'every')} {names} {where}"


def _list_patterns(request: PermissionRequest) -> str:
    return _list_names(request.patterns)


def _list_names(names: Sequence[str], form: str = "{}") -> str:
    text = ", ".join(form.format(one_line(name.replace("\n", "⏎"), MAX_LABEL)) for name in names[:_MAX_NAMES])
    return f"{text} and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else text


def _describe_sandbox(request: PermissionRequest, _requester: Requester) -> str:
    resource = request.metadata.get("keep")
    return f"Keep {one_line(resource, MAX_LABEL)}" if isinstance(resource, str) else "Run a command outside the sandbox"


def _describe_edit(request: PermissionRequest, _requester: Requester) -> str:
    if "keep" in request.metadata:
        return _describe_sandbox(request, _requester)
    if "command" in request.metadata:
        return f"Run a command that may change {_list_patterns(request)}"
    if len(request.patterns) > 1:
        return f"Change {len(request.patterns)} files"
    return f"{_name_effect(str(request.metadata.get('diff') or ''))} {_list_patterns(request)}"


def _name_effect(diff: str) -> str:
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
        folders = _list_names([pattern.removesuffix("*") for pattern in request.patterns])
        return f"Run a command that works outside the project, in {folders}"
    path, diff, files = (request.metadata.get(key) for key in ("filepath", "diff", "files"))
    where = one_line(path, MAX_LABEL) if isinstance(path, str) else _list_patterns(request)
    if isinstance(files, list) and len(cast("list[object]", files)) > 1:
        count = len(cast("list[object]", files))
        return f"Change {count} files, of which this is outside the project: {where}"
    verb = _name_effect(diff) if isinstance(diff, str) and diff else _VERBS_BY_TOOL.get(requester.tool, "Use")
    return f"{verb} {where}, outside the project"


def _describe_fetch(request: PermissionRequest, _requester: Requester) -> str:
    redirect = request.metadata.get("redirect")
    first = one_line(str(redirect or request.metadata.get("url") or request.patterns[0]), 200)
    return f"Fetch {first}" + (", where the page redirects" if redirect else "")


def _describe_private_fetch(request: PermissionRequest, _requester: Requester) -> str:
    address = one_line(str(request.metadata.get("address", "")), MAX_LABEL)
    url = one_line(str(request.metadata.get("url") or request.patterns[0]), 200)
    return f"Fetch {url} from an address that is not public, {address}"


def _describe_task(request: PermissionRequest, _requester: Requester) -> str:
    about = one_line(str(request.metadata.get("description") or ""), MAX_LABEL)
    return f"Start the subagent {_list_patterns(request)}" + (f": {about}" if about else "")


def _describe_repeat(request: PermissionRequest, _requester: Requester) -> str:
    action = str(request.metadata.get("tool") or _list_patterns(request))
    return f"Repeat the same call a third time: {one_line(action, MAX_LABEL)}"


def _describe_fan_out(request: PermissionRequest, _requester: Requester) -> str:
    """Describe the number of subagents to start, their models, and their estimated cost."""
    metadata = request.metadata
    models = _list_names([str(each) for each in cast("list[object]", metadata.get("models") or [])])
    cost = metadata.get("cost")
    price = f"about {format_cost(cost)}" if isinstance(cost, int | float) else "cost not known yet"
    return (
        f"Start {metadata.get('more')} more subagents after the first {metadata.get('started')}, with {models}; {price}"
    )


def _describe_changed_server(request: PermissionRequest, _requester: Requester) -> str:
    return f"Use the MCP server {_list_patterns(request)}, which is not what you agreed to"


def _describe_sampling(request: PermissionRequest, _requester: Requester) -> str:
    return f"Let the MCP server {_list_patterns(request)} ask your model"


def _describe_other(request: PermissionRequest, _requester: Requester) -> str:
    patterns = "" if request.patterns == ["*"] else f": {_list_patterns(request)}"
    return f"Use {one_line(request.permission, MAX_LABEL)}{patterns}"


def _make_title_writer(start: str, *, has_name: bool = True) -> Callable[[PermissionRequest, Requester], str]:
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
    "todowrite": _make_title_writer("Update the todo list", has_name=False),
    "todoread": _make_title_writer("Read the todo list", has_name=False),
    "question": _make_title_writer("Ask you a question", has_name=False),
    "plan_exit": _make_title_writer("Leave plan mode and carry out the plan", has_name=False),
}
# The effect of the tool on a path outside the project.
_VERBS_BY_TOOL = {
    **dict.fromkeys(("read",), "Read"),
    **dict.fromkeys(("list",), "List"),
    **dict.fromkeys(("glob", "grep"), "Search"),
    **dict.fromkeys(("edit", "multiedit", "apply_patch"), "Change"),
    "write": "Write",
}
# What "always" allows, in front of the patterns, by permission.
_ALWAYS_PREFIXES = {
    "bash": "every",
    "external_directory": "every tool on every path of",
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
