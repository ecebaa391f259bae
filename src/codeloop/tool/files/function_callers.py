"""After an edit that changed the name or the parameters of a function,
lists the other files that call it.

The editing tools add the list to their results, so that the model adapts the callers, too.
"""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from codeloop.schema.bounds.outlines import SEARCH_CALLERS_TIME
from codeloop.tool.files.edit_finisher import FileChange
from codeloop.tool.files.file_access import filter_free_to_read, format_path
from codeloop.tool.tool import ToolContext
from codeloop.workspace.search.code_blocks import has_blocks
from codeloop.workspace.search.grep_query import GrepQuery, SearchFailed

# Matches a definition at the start of a line in most languages: at most five modifiers (`async`,
# `public static`), the keyword, in Go a receiver, the name, type parameters.
_DEFINITION = (
    r"(?m)^[ \t]*(?:\w+[ \t]+){0,5}(?:def|func|fn|function|fun)[ \t]+(?:\([^()\n]*\)[ \t]*)?"
    r"(\w{3,})[ \t]*(?:<[^<>\n]*>)?\("
)
_MAX_PARAMETER_CHARS = 2_000
_MAX_TEXT_CHARS = 1_000_000
# Each changed function is a search of the whole project while the model waits
# for the result of its edit.
_MAX_SEARCHED_NAMES = 2
_MAX_SHOWN_FILES = 5
# With calls in more files the name means more than one function,
# or the model knows that it is used everywhere.
_MAX_FILES = 15


async def describe_callers(ctx: ToolContext, changes: Sequence[FileChange], result: str) -> str:
    """Return a line for each function that callers must call differently now and that
    other files call; "": none.

    `result`: the rest of the edit's result. A file is left out if a diagnostic in
    it names that file already.
    """

    def list_names() -> list[str]:
        names: list[str] = []
        for change in changes:
            names += list_changed_functions(
                change.target.real.suffix, change.text_before, change.text_after
            )
        return names

    names = await asyncio.to_thread(list_names)
    edited = {change.target.real for change in changes}
    rows: list[str] = []
    for name in names[:_MAX_SEARCHED_NAMES]:
        callers = [
            each
            for each in await _find_callers(ctx, name)
            if each not in edited and _is_code(each.suffix)
        ]
        paths = [format_path(ctx.workspace, each) for each in callers]
        files = [path for path in paths if f"{path}:" not in result]
        if files and len(callers) <= _MAX_FILES:
            more = (
                f" and {len(files) - _MAX_SHOWN_FILES} more"
                if len(files) > _MAX_SHOWN_FILES
                else ""
            )
            rows.append(f"`{name}(` also occurs in {', '.join(files[:_MAX_SHOWN_FILES])}{more}.")
    return "\n".join(rows)


async def _find_callers(ctx: ToolContext, name: str) -> list[Path]:
    workspace = ctx.workspace
    query = GrepQuery(rf"\b{name}\(", mode="files", max_shown_matches=_MAX_FILES * 4)
    try:
        async with asyncio.timeout(SEARCH_CALLERS_TIME.seconds):
            result = await workspace.ripgrep.grep(workspace.directory, query, workspace.environment)
    except (SearchFailed, TimeoutError):
        return []
    return sorted(await filter_free_to_read(ctx, [hits.path for hits in result.files]))


def list_changed_functions(suffix: str, before: str, after: str) -> list[str]:
    """Return the functions that are gone or whose parameters no longer fit earlier calls, by name.

    `suffix`: that of the file's name, such as `.py`. A function that is defined more than once is
    left out, as are dunder methods and tests, which nothing calls by name.
    """
    if not _is_code(suffix) or len(before) + len(after) > _MAX_TEXT_CHARS:
        return []
    new_definitions = _read_definitions(after)
    changed: list[str] = []
    for name, old_parameters in _read_definitions(before).items():
        if name.startswith(("__", "test")) or len(old_parameters) != 1:
            continue
        new_parameters = new_definitions.get(name)
        if new_parameters is None or (
            new_parameters != old_parameters
            and not _accepts_calls(old_parameters[0], new_parameters[0])
        ):
            changed.append(name)
    return changed


def _is_code(suffix: str) -> bool:
    return has_blocks(suffix) and suffix.lower() not in {".md", ".markdown"}


def _read_definitions(text: str) -> dict[str, list[str]]:
    """Return the functions of a text by name, each with the parameter lists
    of all its definitions.
    """
    definitions: dict[str, list[str]] = {}
    for match in re.finditer(_DEFINITION, text):
        depth = 1
        end = start = match.end()
        for end in range(start, min(start + _MAX_PARAMETER_CHARS, len(text))):
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[end], 0)
            if not depth:
                break
        definitions.setdefault(match[1], []).append(text[start:end])
    return definitions


class _Parameter(NamedTuple):
    """A parameter. `is_optional`: a call may leave it out;
    `is_named`: in Python, it can only be given by its name.
    """

    name: str
    is_optional: bool
    is_named: bool


def _accepts_calls(before: str, after: str) -> bool:
    """Return whether calls that fit the parameter list `before` still fit the list `after`."""
    old, new = _list_parameters(before), _list_parameters(after)
    old_order, new_order = (
        [each.name for each in parameters if not each.is_named] for parameters in (old, new)
    )
    keeps_all = {each.name for each in old} <= {each.name for each in new}
    # A parameter without a default must have been required before: else earlier calls may lack it.
    required = {each.name for each in old if not each.is_optional}
    can_be_given = all(each.is_optional or each.name in required for each in new)
    return keeps_all and can_be_given and new_order[: len(old_order)] == old_order


def _list_parameters(text: str) -> list[_Parameter]:
    """Return the parameters in a parameter list."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    parameters: list[_Parameter] = []
    is_named = False
    for piece in pieces:
        # What stands before a type in most languages; in Go the type follows after a blank.
        head = piece.partition(":")[0].strip()
        # The name after marks such as those of `*args`, `&self`, `...rest`.
        if match := re.match(r"[\s*&.]*(\w+)", piece):
            # Any number of arguments: `*args` and, in Go, `rest ...int`;
            # an optional parameter of TypeScript
            # (`name?: string`); or a default, for which the arrow of a type (`=>`) does not stand.
            is_optional = (
                head.startswith("*")
                or "..." in head
                or head.endswith("?")
                or "=" in piece.replace("=>", "")
            )
            parameters.append(_Parameter(match[1], is_optional, is_named or head.startswith("**")))
        is_named = is_named or head.startswith("*")
    return parameters
