"""Names the files that call a function whose parameters, or whose name, an edit changed."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from codeloop.tool.after_edit import FileChange
from codeloop.tool.file_access import filter_free, format_path
from codeloop.tool.tool import ToolContext
from codeloop.workspace.search.blocks import has_blocks
from codeloop.workspace.search.rg_matches import Query, SearchFailed

_DEFINITION = re.compile(
    r"^[ \t]*(?:\w+[ \t]+){0,5}(?:def|func|fn|function|fun)[ \t]+(?:\([^()\n]*\)[ \t]*)?"
    r"(\w{3,})[ \t]*(?:<[^<>\n]*>)?\(",
    re.MULTILINE,
)
_PARAMETERS = 2_000
"""How many characters of a list of parameters are read."""
_TEXT = 1_000_000
_NAMES = 2
"""How many functions of an edit are looked for."""
_SHOWN_FILES = 5
_MAX_FILES = 15
"""With calls in more files the name means more than one function, or the model knows that it is used everywhere."""
_SEARCH_SECONDS = 2.0
"""Seconds that a search may take: the hint is left out where it takes longer."""


async def describe_callers(ctx: ToolContext, changes: Sequence[FileChange], result: str) -> str:
    """Return a line for each function that changed for callers, and that other files call; "": there is none.

    `result`: what the model is told of the edit otherwise; files that an error there names are left out.
    """
    texts = [(change.target.real.suffix, change.text_before, change.text_after) for change in changes]
    names = await asyncio.to_thread(lambda: [name for each in texts for name in list_changed_functions(*each)])
    edited = {change.target.real for change in changes}
    rows: list[str] = []
    for name in names[:_NAMES]:
        callers = [each for each in await _find_callers(ctx, name) if each not in edited and _is_code(each.suffix)]
        paths = [format_path(ctx.workspace, each) for each in callers]
        files = [path for path in paths if f"{path}:" not in result]
        if files and len(callers) <= _MAX_FILES:
            more = f" and {len(files) - _SHOWN_FILES} more" if len(files) > _SHOWN_FILES else ""
            rows.append(f"`{name}(` also occurs in {', '.join(files[:_SHOWN_FILES])}{more}.")
    return "\n".join(rows)


async def _find_callers(ctx: ToolContext, name: str) -> list[Path]:
    workspace = ctx.workspace
    query = Query(rf"\b{name}\(", mode="files", shown=_MAX_FILES * 4)
    try:
        async with asyncio.timeout(_SEARCH_SECONDS):
            result = await workspace.ripgrep.grep(workspace.directory, query, workspace.environment)
    except (SearchFailed, TimeoutError):
        return []
    return sorted(await filter_free(ctx, [hits.path for hits in result.files]))


def list_changed_functions(suffix: str, before: str, after: str) -> list[str]:
    """Return the functions that callers must call in another way now, or that are gone.

    `suffix`: the end of the file's name, such as `.py`. A function that is defined more than once is left out.
    """
    if not _is_code(suffix) or len(before) + len(after) > _TEXT:
        return []
    now = _read_definitions(after)
    return [
        name
        for name, parameters in _read_definitions(before).items()
        if not name.startswith(("__", "test")) and len(parameters) == 1
        if parameters != now.get(name) and not (name in now and _accepts(parameters[0], now[name][0]))
    ]


def _is_code(suffix: str) -> bool:
    return has_blocks(suffix) and suffix.lower() not in {".md", ".markdown"}


def _read_definitions(text: str) -> dict[str, list[str]]:
    """Return the functions of a text, each with the parameters of every definition of that name."""
    definitions: dict[str, list[str]] = {}
    for match in _DEFINITION.finditer(text):
        depth = 1
        end = start = match.end()
        for end in range(start, min(start + _PARAMETERS, len(text))):
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[end], 0)
            if not depth:
                break
        definitions.setdefault(match[1], []).append(text[start:end])
    return definitions


def _accepts(before: str, after: str) -> bool:
    """Return whether calls with the parameters `before` are right for those after."""
    old, new = dict(_list_parameters(before)), dict(_list_parameters(after))
    are_kept = [name for name in new if name in old] == [*old]
    return are_kept and all(is_optional or (name in old and not old[name]) for name, is_optional in new.items())


def _list_parameters(text: str) -> list[tuple[str, bool]]:
    """Return the names of parameters, each with whether calls may leave it out."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    matches = ((re.match(r"[\s*&.]*(\w+)", each), each) for each in pieces)
    return [(match[1], "=" in each or "?" in each or "*" in each.partition(":")[0]) for match, each in matches if match]
