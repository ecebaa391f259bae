"""Ask a language server: definitions, references, calls, outlines, renames."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from codeloop.lsp.client.client import LanguageClient
from codeloop.lsp.client.connection import ErrorAnswer, ServerGone
from codeloop.lsp.client.diagnostic import WARNING
from codeloop.lsp.client.document import read_text
from codeloop.lsp.client.text import split_lines
from codeloop.lsp.languages import format_diagnostic
from codeloop.lsp.new_diagnostics import ServerDiagnostics
from codeloop.lsp.server import ServerUnavailable
from codeloop.lsp.symbols import (
    Location,
    TextPosition,
    fetch_hover,
    fetch_outline,
    find_hierarchy,
    find_locations,
    find_workspace_symbols,
    make_position_params,
)
from codeloop.schema.bounds.language import LSP_FILE, LSP_FOUND, LSP_LINES, LSP_REQUEST, LSP_WAIT
from codeloop.schema.wire import JSON
from codeloop.tool.builtin.language.outline import outline_rows
from codeloop.tool.builtin.language.rename import rename
from codeloop.tool.file_access import (
    failures,
    format_path,
    is_free,
    load_text,
    missing,
    read_need,
    readable,
    resolve_allowed,
)
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, tool
from codeloop.workspace.workspace import ResolvedPath

Operation = Literal[
    "definition",
    "references",
    "implementation",
    "hover",
    "documentSymbols",
    "workspaceSymbols",
    "incomingCalls",
    "outgoingCalls",
    "supertypes",
    "subtypes",
    "rename",
    "diagnostics",
]
_CAPABILITIES: dict[str, str] = {
    "definition": "definitionProvider",
    "references": "referencesProvider",
    "implementation": "implementationProvider",
    "hover": "hoverProvider",
    "documentSymbols": "documentSymbolProvider",
    "workspaceSymbols": "workspaceSymbolProvider",
    "incomingCalls": "callHierarchyProvider",
    "outgoingCalls": "callHierarchyProvider",
    "supertypes": "typeHierarchyProvider",
    "subtypes": "typeHierarchyProvider",
    "rename": "renameProvider",
}
_HIERARCHIES = {
    "incomingCalls": ("Call", "incoming"),
    "outgoingCalls": ("Call", "outgoing"),
    "supertypes": ("Type", "supertypes"),
    "subtypes": ("Type", "subtypes"),
}
_OF_FILE = frozenset(("documentSymbols", "diagnostics", "workspaceSymbols"))
_PATH_WITH_LINE = re.compile(r"(.+?):(\d{1,9})(?::\d{1,9})?", re.DOTALL)
_NEAR = 3  # lines above and below the one that was named
_MOST_WHOLE = 3  # results that are shown with all their lines


class LspParams(msgspec.Struct, frozen=True, rename="camel"):
    """What lsp takes."""

    operation: Operation
    file_path: str
    line: Annotated[int, Meta(ge=1, description="from 1")] | None = None
    symbol: str | None = None
    new_name: str | None = None


@tool("lsp", params=LspParams)
async def lsp(params: LspParams, ctx: ToolContext) -> ToolResult:
    """Ask a language server."""
    path, line = params.file_path, params.line
    if (match := _PATH_WITH_LINE.fullmatch(path)) and not os.path.lexists(ctx.workspace.directory / path):
        path, line = match[1], line or int(match[2])
    target = await resolve_allowed(ctx, path, lambda target: [read_need(ctx.workspace, target)])
    with failures(ctx.workspace, target):
        file = load_text(target.real)
        if file is None:
            raise ToolFailure(await missing(ctx, target))
    text = file[1].content
    _check_params(params, line)
    if len(text) > LSP_FILE.value:
        raise ToolFailure(f"{format_path(ctx.workspace, target.path)} is too large for language servers; search in it")
    servers = await _find_servers(ctx, target)
    try:
        news, client = await _choose_client(params.operation, servers, target, text)
        metadata: JSON = {"operation": params.operation}
        if params.operation == "rename":
            output, more = await rename(
                ctx, client, {**_make_position(ctx, params, client, target, line), "newName": params.new_name}
            )
            metadata |= more
        else:
            output, shown_files = await _ask_server(ctx, params, client, target, line)
            news.keep_open(client, shown_files)
    except (ErrorAnswer, ServerGone, ServerUnavailable) as error:
        raise ToolFailure(f"{error}", advice="Search with grep instead.") from error
    except TimeoutError as error:
        raise ToolFailure(
            f"The language server did not answer within {LSP_REQUEST.seconds:.0f} s; it may still be looking at the "
            "project.",
            advice="Search with grep, or ask again later.",
        ) from error
    title = f"{params.operation} {params.symbol or ''}".strip()
    return ToolResult(title, readable(output), metadata)


def _check_params(params: LspParams, line: int | None) -> None:
    """Raise ToolFailure when something is missing that the operation needs."""
    if params.operation == "workspaceSymbols" and not params.symbol:
        raise ToolFailure("workspaceSymbols needs `symbol`: a name, or a part of one")
    if params.operation not in _OF_FILE and (line is None or not params.symbol):
        raise ToolFailure(
            "The line or the symbol is missing.",
            advice="Give the line (`filePath` as path:line) and `symbol`, the name on that line.",
        )
    if params.operation == "rename" and not params.new_name:
        raise ToolFailure("rename needs `newName`")


async def _find_servers(ctx: ToolContext, target: ResolvedPath) -> list[ServerDiagnostics]:
    languages = ctx.services.languages
    servers = await languages.find_servers(target.real) if languages is not None else []
    if not servers:
        raise ToolFailure(
            f"No language server serves {format_path(ctx.workspace, target.path)} here (`codeloop lsp list` says why).",
            advice="Search with grep.",
        )
    return servers


async def _choose_client(
    operation: str, servers: Sequence[ServerDiagnostics], target: ResolvedPath, text: str
) -> tuple[ServerDiagnostics, LanguageClient]:
    """Return the first server that supports the operation, with the file's current text opened in it."""
    problem: ServerUnavailable | None = None
    names: list[str] = []
    for news in servers:
        try:
            client = await news.open_document(target.real, text)
        except ServerUnavailable as error:
            problem = error
            continue
        if operation not in _CAPABILITIES or client.has_capability(_CAPABILITIES[operation]):
            return news, client
        names.append(news.server.name)
    if problem is not None and not names:
        raise problem
    raise ToolFailure(
        f"The language server {' and '.join(names)} does not know {operation}.", advice="Search with grep."
    )


async def _ask_server(
    ctx: ToolContext, params: LspParams, client: LanguageClient, target: ResolvedPath, line: int | None
) -> tuple[str, Sequence[Path]]:
    """Return the text for the model, and the files of the project whose lines it shows."""
    name = format_path(ctx.workspace, target.path)
    match params.operation:
        case "documentSymbols":
            rows = outline_rows(await fetch_outline(client, target.real))
            return "\n".join(rows) or f"{name} has no symbols.", ()
        case "workspaceSymbols":
            spots = await _find_symbols(client, params.symbol or "")
            if not spots and await client.registrations.wait_for_work(LSP_REQUEST.seconds):
                spots = await _find_symbols(client, params.symbol or "")
            return _format_spots(ctx, spots) or f"Nothing is named like {params.symbol}.", ()
        case "diagnostics":
            return await _format_diagnostics(client, target, name), ()
        case _:
            pass
    position = _make_position(ctx, params, client, target, line)
    if params.operation == "hover":
        await _check_definition(ctx, client, position, params.symbol or "")
        return await fetch_hover(client, position) or f"Nothing is known of {params.symbol}.", ()
    spots = await _request_spots(client, params.operation, position)
    if not spots:
        if not await client.registrations.wait_for_work(LSP_REQUEST.seconds):
            await client.wait_for_diagnostics(
                target.real, LSP_WAIT.seconds
            )  # it may answer before it has analysed the file
        spots = await _request_spots(client, params.operation, position)
    if params.operation in {"definition", "implementation"} and len(spots) <= _MOST_WHOLE:
        spots = [await _widen(ctx, client, spot, target) for spot in spots]
    files = [path for path in dict.fromkeys(spot.path for spot in spots) if _is_free(ctx, path)]
    return _format_spots(ctx, spots) or f"No {params.operation} of {params.symbol} found.", files


async def _find_symbols(client: LanguageClient, name: str) -> list[Location]:
    return [spot for _, spot in await find_workspace_symbols(client, name)]


async def _request_spots(client: LanguageClient, operation: str, position: JSON) -> list[Location]:
    if operation in _HIERARCHIES:
        return await find_hierarchy(client, *_HIERARCHIES[operation], position)
    more = {"context": {"includeDeclaration": True}} if operation == "references" else {}
    return await find_locations(client, operation, {**position, **more})


async def _check_definition(ctx: ToolContext, client: LanguageClient, position: JSON, symbol: str) -> None:
    """Raise ToolFailure for a name defined in a file that may not be read: the answer may contain its value."""
    for spot in (
        await find_locations(client, "definition", position) if client.has_capability("definitionProvider") else ()
    ):
        if ctx.workspace.contains(Path(os.path.realpath(spot.path))) and not _is_free(ctx, spot.path):
            where = f"{format_path(ctx.workspace, spot.path)}:{spot.line + 1}"
            raise ToolFailure(f"{symbol} is defined in {where}, which may not be read.")


def _make_position(
    ctx: ToolContext, params: LspParams, client: LanguageClient, target: ResolvedPath, line: int | None
) -> JSON:
    """Return the named position in the form that requests take."""
    name = format_path(ctx.workspace, target.path)
    at = _find_position(client.documents[target.real].text, name, line or 1, params.symbol or "")
    return make_position_params(client, target.real, at)


def _find_position(text: str, name: str, line: int, symbol: str) -> TextPosition:
    """Return a symbol's position: on the given line, or one near it."""
    lines = split_lines(text)
    word = symbol.rpartition(".")[2].rpartition("::")[2]
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    near = sorted(range(max(0, line - 1 - _NEAR), min(len(lines), line + _NEAR)), key=lambda at: abs(at - line + 1))
    for at in near:
        if match := pattern.search(lines[at]):
            return TextPosition(at, match.start())
    here = lines[line - 1].strip() if line <= len(lines) else "(beyond the end of the file)"
    raise ToolFailure(f"{symbol} is not on line {line} of {name}, which is: {here}")


async def _format_diagnostics(client: LanguageClient, target: ResolvedPath, name: str) -> str:
    diagnostics = await client.wait_for_diagnostics(target.real, LSP_REQUEST.seconds)
    if diagnostics is None:
        raise TimeoutError
    serious = [each for each in diagnostics if each.severity <= WARNING]
    rows = [f"{'error' if each.severity < WARNING else 'warning'} {format_diagnostic(each, name)}" for each in serious]
    return "\n".join(rows[: LSP_FOUND.value]) or f"{name} has no errors and no warnings."


async def _widen(ctx: ToolContext, client: LanguageClient, spot: Location, target: ResolvedPath) -> Location:
    """Return a location widened to all lines of the definition."""
    if spot.end > spot.line or not client.has_capability("documentSymbolProvider") or not _is_free(ctx, spot.path):
        return spot
    text = read_text(spot.path)
    if spot.path not in client.documents and text is not None and spot.path.suffix == target.real.suffix:
        client.sync(spot.path, client.documents[target.real].language, text)
    if spot.path not in client.documents:
        return spot  # of another language, which this server may not know
    rows = [each for each in await fetch_outline(client, spot.path) if each.line == spot.line]
    return Location(spot.path, spot.line, max((each.end for each in rows), default=spot.line), spot.name)


def _format_spots(ctx: ToolContext, spots: Sequence[Location]) -> str:
    """Format locations with their lines; of many, one line each. Files that may not be read show no lines."""
    texts: dict[Path, list[str]] = {}
    rows: list[str] = []
    is_whole = len(spots) <= _MOST_WHOLE
    for spot in spots[: LSP_FOUND.value]:
        if spot.path not in texts:
            texts[spot.path] = _read_lines(ctx, spot.path)
        lines = texts[spot.path]
        name = f"{format_path(ctx.workspace, spot.path)}:{spot.line + 1}"
        own = f" [{spot.name}]" if spot.name and _is_free(ctx, spot.path) else ""
        end = min(spot.end, spot.line + LSP_LINES.value - 1) if is_whole else spot.line
        if end > spot.line and lines:
            rows.append(f"{name}{own}")
            rows += [f"{number + 1}: {lines[number]}" for number in range(spot.line, end + 1) if number < len(lines)]
            rows += [f"(to line {spot.end + 1})"] if end < spot.end else []
        else:
            text = lines[spot.line].strip() if 0 <= spot.line < len(lines) else ""
            rows.append(f"{name}{own}{text and f': {text}'}")
    more = len(spots) - LSP_FOUND.value
    return "\n".join([*rows, *([f"({more} more)"] if more > 0 else [])])


def _is_free(ctx: ToolContext, path: Path) -> bool:
    """Return whether the real file that a server names may be read without a question."""
    return is_free(ctx, Path(os.path.realpath(path)))


def _read_lines(ctx: ToolContext, path: Path) -> list[str]:
    """Return the lines of a file that may be read without a question; else none."""
    text = read_text(Path(os.path.realpath(path))) if _is_free(ctx, path) else None
    return [line.rstrip("\r\n") for line in split_lines(text or "")]
