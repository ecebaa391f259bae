"""Shows what a language server found as text: locations with their lines, and outlines."""

import os
from collections.abc import Sequence
from pathlib import Path

from codeloop.lsp.client.client import LanguageClient
from codeloop.lsp.client.document import read_text
from codeloop.lsp.client.text_positions import split_lines
from codeloop.lsp.symbols import Location, OutlineRow, fetch_outline
from codeloop.schema.bounds.language_tools import (
    LSP_DEFINITION_LINES,
    LSP_LOCATIONS_SHOWN,
    LSP_OUTLINE_LINES,
)
from codeloop.tool.files.file_access import format_path, is_free_to_read
from codeloop.tool.tool import ToolContext
from codeloop.workspace.workspace import ResolvedPath

MAX_WHOLE_DEFINITIONS = 3
"""With more results each is shown with one line;
with so many or fewer, all lines of each definition are.
"""


def format_outline_rows(rows: list[OutlineRow]) -> list[str]:
    """Return a line for each symbol: `12-40: class Name`, indented by its depth.
    Local variables are left out.
    """
    shown_rows = [each for each in rows if not (each.depth and each.is_minor)]
    lines = [
        f"{'  ' * each.depth}{each.line + 1}-{each.end + 1}: {each.kind} {each.name}"
        for each in shown_rows
    ]
    left_out = len(lines) - LSP_OUTLINE_LINES.value
    return [*lines[: LSP_OUTLINE_LINES.value], *([f"({left_out} more)"] if left_out > 0 else [])]


async def widen_location(
    ctx: ToolContext, client: LanguageClient, location: Location, target: ResolvedPath
) -> Location:
    """Return the location of a definition's name, widened to all lines of the
    definition if they are known.
    """
    if (
        location.end > location.line
        or not client.has_capability("documentSymbolProvider")
        or not is_free_location(ctx, location.path)
    ):
        return location
    text = read_text(location.path)
    if (
        location.path not in client.documents
        and text is not None
        and location.path.suffix == target.real.suffix
    ):
        client.send_text(location.path, client.documents[target.real].language, text)
    if location.path not in client.documents:
        # It is a file of another language, which this server may not know.
        return location
    rows = [
        each for each in await fetch_outline(client, location.path) if each.line == location.line
    ]
    return Location(
        location.path,
        location.line,
        max((each.end for each in rows), default=location.line),
        location.name,
    )


def format_locations(ctx: ToolContext, locations: Sequence[Location]) -> str:
    """Format locations with their lines; if there are many, each with one line.

    Lines of files that may not be read without a question are left out.
    """
    texts: dict[Path, list[str]] = {}
    rows: list[str] = []
    is_whole = len(locations) <= MAX_WHOLE_DEFINITIONS
    for location in locations[: LSP_LOCATIONS_SHOWN.value]:
        if location.path not in texts:
            texts[location.path] = _read_lines(ctx, location.path)
        lines = texts[location.path]
        name = f"{format_path(ctx.workspace, location.path)}:{location.line + 1}"
        label = (
            f" [{location.name}]" if location.name and is_free_location(ctx, location.path) else ""
        )
        end = (
            min(location.end, location.line + LSP_DEFINITION_LINES.value - 1)
            if is_whole
            else location.line
        )
        if end > location.line and lines:
            rows.append(f"{name}{label}")
            rows += [
                f"{number + 1}: {lines[number]}"
                for number in range(location.line, end + 1)
                if number < len(lines)
            ]
            rows += [f"(to line {location.end + 1})"] if end < location.end else []
        else:
            text = lines[location.line].strip() if 0 <= location.line < len(lines) else ""
            rows.append(f"{name}{label}: {text}" if text else f"{name}{label}")
    left_out = len(locations) - LSP_LOCATIONS_SHOWN.value
    return "\n".join([*rows, *([f"({left_out} more)"] if left_out > 0 else [])])


def is_free_location(ctx: ToolContext, path: Path) -> bool:
    """Return whether the session may read a file, which a server names, without a question.
    Links are followed.
    """
    return is_free_to_read(ctx, Path(os.path.realpath(path)))


def _read_lines(ctx: ToolContext, path: Path) -> list[str]:
    """Return the lines of a file; none if it may not be read without a question."""
    text = read_text(Path(os.path.realpath(path))) if is_free_location(ctx, path) else None
    return [line.rstrip("\r\n") for line in split_lines(text or "")]
