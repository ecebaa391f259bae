"""Describes permission requests for every user interface: who asks for what, the details,
what "always" allows.
"""

import re
from collections.abc import Iterator
from textwrap import wrap
from typing import cast

import msgspec
from msgspec import Struct

from codeloop.client.formatting import TextStyle
from codeloop.client.questions.permission_titles import (
    can_stand_in_title,
    describe_action,
    describe_always,
)
from codeloop.client.questions.quoting import CUT_MARK, QUOTE_MARK, quote_text
from codeloop.client.questions.requester import MAX_LABEL, Requester
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.wire import JSON, encode_json

_MAX_DETAILS, _DETAIL_ROWS = 8, 3
"""How many further effects of the answer are listed, and the rows of each."""
_REASON_ROWS = 3
"""Rows of the model's reason to run a command outside the sandbox."""
# Of the lines of a diff, by their first character;
# a line without one of these is the name of a file.
_STYLES_BY_SIGN: dict[str, TextStyle] = {
    "+": "green",
    "-": "red",
    " ": "dim",
    "@": "dim",
    "\\": "dim",
    "": "dim",
}
# What separates the files in a diff of several: `Index: src/main.py`.
_DIFF_FILE_HEADER = "(?m)^Index: "


class RequestText(Struct, frozen=True):
    """The texts of a request. `rows`: its details, each with its style.

    `always`, `session`: in a line, the effect of "always" in the directory,
    and for the session alone.
    """

    title: str
    rows: list[tuple[TextStyle, str]]
    always: str
    session: str

    @property
    def is_cut(self) -> bool:
        """Whether lines of a quoted text were omitted."""
        return any(row.startswith(CUT_MARK) for _, row in self.rows)


def describe_request(
    request: PermissionRequest, requester: Requester, columns: int, max_rows: int
) -> RequestText:
    """Describe a request in rows of at most `columns`,
    with at most `max_rows` rows of quoted text.
    """
    action = describe_action(request, requester)
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
            "The page is allowed. Its name was looked up only then, and leads to this address.",
            columns,
        )
    if request.metadata.get("kept"):
        rows.append(("dim", "  Once allowed, it is not asked about again in this session."))
    title = f"{action}{tool_suffix}{subagent_suffix}"
    return RequestText(
        title, rows, describe_always(request), describe_always(request, for_session=True)
    )


def _wrap_warning(text: str, columns: int) -> Iterator[tuple[TextStyle, str]]:
    for line in wrap(text, max(columns - 3, 20)):
        yield "yellow", f"  {line}"


def _list_rows(
    request: PermissionRequest, columns: int, max_rows: int
) -> Iterator[tuple[TextStyle, str]]:
    """Yield the rows below the title.

    In this order: why it is asked, names that the title can't hold, the diff, the command or the
    arguments, the model's reason, and the directory and further effects of the answer.
    """
    metadata = request.metadata
    other_details = _list_other_details(metadata)
    max_rows = max(max_rows - len(other_details), _REASON_ROWS)
    command, diff, call = metadata.get("command"), metadata.get("diff"), metadata.get("input")
    if isinstance(doubt := metadata.get("doubt"), str):
        for row in quote_text(
            f"asked although a rule lets it out, since {doubt}", columns, _REASON_ROWS
        ):
            yield "dim", row
    # A command is quoted itself, and a diff of several files names each of them. With `keep` the
    # question is not about a command, but whether a file that it has written stays.
    is_command = request.permission in {"bash", "sandbox"} and "keep" not in metadata
    shows_names = not is_command and (not diff or len(request.patterns) == 1)
    if shows_names and not can_stand_in_title(request.patterns):
        yield from _quote_bold(
            "\n".join(pattern.replace("\n", "⏎") for pattern in request.patterns), columns, max_rows
        )
    if isinstance(diff, str) and diff:
        yield from _quote_diff(diff, request.patterns, columns, max_rows)
    elif isinstance(command, str) and command:
        yield from _quote_bold(command, columns, max_rows)
    elif isinstance(call, dict):
        values = cast("JSON", call)
        shell_command = values.get("command")
        if isinstance(shell_command, str) and set(values) <= {"command", "description"}:
            yield from _quote_bold(shell_command, columns, max_rows)
        else:
            yield from _quote_bold(_format_arguments(values), columns, max_rows)
    elif request.permission == "bash":
        yield from _quote_bold("\n".join(request.patterns), columns, max_rows)
    # Below what is asked for: it is only what the model claims.
    if isinstance(reason := metadata.get("reason"), str):
        # Other reasons are the program's own, such as why a file that appeared is asked about.
        is_claim = request.permission == "sandbox" and "keep" not in metadata
        speaker = "the model says" if is_claim else "because"
        for row in quote_text(f"{speaker}: {reason}", columns, _REASON_ROWS):
            yield "dim", row
    if isinstance(workdir := metadata.get("workdir"), str) and workdir:
        other_details = [f"in {workdir}", *other_details]
    for line in other_details:
        for row in quote_text(line.replace("\n", "⏎"), columns, _DETAIL_ROWS):
            yield "dim", row


def _list_other_details(metadata: JSON) -> list[str]:
    """Return lines about further effects of the answer, other than the command, which is quoted."""
    other_details = metadata.get("also")
    lines = (
        [str(line) for line in cast("list[object]", other_details)]
        if isinstance(other_details, list)
        else []
    )
    others = [f"also {line}" for line in lines if not line.startswith("bash: ")]
    if len(others) <= _MAX_DETAILS:
        return others
    return [*others[: _MAX_DETAILS - 1], f"also {len(others) - _MAX_DETAILS + 1} more"]


def _quote_bold(text: str, columns: int, max_rows: int) -> Iterator[tuple[TextStyle, str]]:
    for row in quote_text(text, columns, max_rows):
        yield "bold", row


def _format_arguments(call: JSON) -> str:
    """Format the arguments of a call as JSON, and below it texts of several lines, unescaped."""
    texts = {
        name: value
        for name, value in call.items()
        if isinstance(value, str) and "\n" in value.strip("\n")
    }
    rest = {name: value for name, value in call.items() if name not in texts}
    pieces = (
        [msgspec.json.format(encode_json(rest), indent=2).decode()] if rest or not texts else []
    )
    return "\n".join([*pieces, *(f"{name}:\n{value}" for name, value in texts.items())])


def _quote_diff(
    diff: str, paths: list[str], columns: int, max_rows: int
) -> Iterator[tuple[TextStyle, str]]:
    """Quote the hunks of a diff in colours; a diff of several files names
    each file above its hunks.
    """
    files = re.split(_DIFF_FILE_HEADER, diff)[1:] or [diff]
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
