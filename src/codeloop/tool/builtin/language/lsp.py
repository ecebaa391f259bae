"""The tool `lsp`: asks a language server for definitions, references, calls, outlines,
diagnostics or a rename.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.lsp.client.client import LanguageClient
from codeloop.lsp.client.connection import ErrorAnswer, ServerGone
from codeloop.lsp.client.diagnostic import WARNING, format_diagnostic
from codeloop.lsp.client.text_positions import TextPosition, split_lines
from codeloop.lsp.diagnostics_tracker import DiagnosticsTracker
from codeloop.lsp.server import ServerUnavailable
from codeloop.lsp.symbols import (
    Location,
    fetch_hover,
    fetch_outline,
    find_calls,
    find_locations,
    find_related_types,
    find_workspace_symbols,
    make_position_params,
)
from codeloop.schema.bounds.language_tools import (
    LSP_DIAGNOSTICS_TIME,
    LSP_FILE_BYTES,
    LSP_LOCATIONS_SHOWN,
    LSP_REQUEST,
)
from codeloop.schema.wire import JSON
from codeloop.tool.builtin.language.location_texts import (
    MAX_WHOLE_DEFINITIONS,
    format_locations,
    format_outline_rows,
    is_free_location,
    widen_location,
)
from codeloop.tool.builtin.language.rename import rename_symbol
from codeloop.tool.files.file_access import (
    convert_errors,
    describe_missing_file,
    format_path,
    make_read_need,
    resolve_allowed,
)
from codeloop.tool.files.file_changes import load_text
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
"""The capability that a server needs for each operation; for `diagnostics` it needs none."""
_WITHOUT_POSITION = frozenset(("documentSymbols", "diagnostics", "workspaceSymbols"))
"""The operations that need no line and no symbol on it."""
# Matches `path:12` and `path:12:5`.
_PATH_WITH_LINE = r"(?s)(.+?):(\d{1,9})(?::\d{1,9})?"
# The symbol is also searched so many lines above and below: a model's line numbers may
# be out of date after an edit.
_NEAR_LINES = 3


class LspParams(msgspec.Struct, frozen=True, rename="camel"):
    """Arguments of the tool `lsp`. `file_path` may end with the line, as `path:12`."""

    operation: Operation
    file_path: str
    line: Annotated[int, Meta(ge=1, description="from 1")] | None = None
    symbol: str | None = None
    new_name: str | None = None


@tool("lsp", params=LspParams)
async def lsp(params: LspParams, ctx: ToolContext) -> ToolResult:
    """Ask the first language server for the file that supports the operation."""
    path, line = params.file_path, params.line
    if (match := re.fullmatch(_PATH_WITH_LINE, path)) and not os.path.lexists(
        ctx.workspace.directory / path
    ):
        path, line = match[1], line or int(match[2])
    target = await resolve_allowed(
        ctx, path, lambda target: [make_read_need(ctx.workspace, target)]
    )
    with convert_errors(ctx.workspace, target):
        file = load_text(target.real)
        if file is None:
            raise ToolFailure(await describe_missing_file(ctx, target))
    text = file[1].content
    _check_params(params, line)
    if len(text) > LSP_FILE_BYTES.value:
        raise ToolFailure(
            f"{format_path(ctx.workspace, target.path)} is too large for language servers; search in it"
        )
    trackers = await _find_trackers(ctx, target)
    try:
        tracker, client = await _choose_client(params.operation, trackers, target, text)
        metadata: JSON = {"operation": params.operation}
        if params.operation == "rename":
            output, rename_metadata = await rename_symbol(
                ctx,
                client,
                {**_make_position(ctx, params, client, target, line), "newName": params.new_name},
            )
            metadata |= rename_metadata
        else:
            output, shown_files = await _ask_server(ctx, params, client, target, line)
            tracker.open_read_files(client, shown_files)
    except (ErrorAnswer, ServerGone, ServerUnavailable) as error:
        raise ToolFailure(f"{error}", advice="Search with grep instead.") from error
    except TimeoutError as error:
        raise ToolFailure(
            f"The language server did not answer within {LSP_REQUEST.seconds:.0f} s; it may still be looking at the "
            "project.",
            advice="Search with grep, or ask again later.",
        ) from error
    title = f"{params.operation} {params.symbol or ''}".strip()
    return ToolResult(title, replace_undecodable(output), metadata)


def _check_params(params: LspParams, line: int | None) -> None:
    """Raise ToolFailure if an argument that the operation needs is missing."""
    if params.operation == "workspaceSymbols" and not params.symbol:
        raise ToolFailure("workspaceSymbols needs `symbol`: a name, or a part of one")
    if params.operation not in _WITHOUT_POSITION and (line is None or not params.symbol):
        raise ToolFailure(
            "The line or the symbol is missing.",
            advice="Give the line (`filePath` as path:line) and `symbol`, the name on that line.",
        )
    if params.operation == "rename" and not params.new_name:
        raise ToolFailure("rename needs `newName`")


async def _find_trackers(ctx: ToolContext, target: ResolvedPath) -> list[DiagnosticsTracker]:
    """Return the trackers of the language servers for a file.
    Raises ToolFailure when there is no server.
    """
    languages = ctx.services.languages
    trackers = await languages.prepare_trackers(target.real) if languages is not None else []
    if not trackers:
        raise ToolFailure(
            f"No language server serves {format_path(ctx.workspace, target.path)} here (`codeloop lsp list` says why).",
            advice="Search with grep.",
        )
    return trackers


async def _choose_client(
    operation: str, trackers: Sequence[DiagnosticsTracker], target: ResolvedPath, text: str
) -> tuple[DiagnosticsTracker, LanguageClient]:
    """Return the first server that supports the operation,
    with the file's current text opened in it.

    Raises ToolFailure when none supports it, and ServerUnavailable when none could be started.
    """
    problem: ServerUnavailable | None = None
    names: list[str] = []
    for tracker in trackers:
        try:
            client = await tracker.open_document(target.real, text)
        except ServerUnavailable as error:
            problem = error
            continue
        if operation not in _CAPABILITIES or client.has_capability(_CAPABILITIES[operation]):
            return tracker, client
        names.append(tracker.server.name)
    if problem is not None and not names:
        raise problem
    raise ToolFailure(
        f"The language server {' and '.join(names)} does not know {operation}.",
        advice="Search with grep.",
    )


async def _ask_server(
    ctx: ToolContext,
    params: LspParams,
    client: LanguageClient,
    target: ResolvedPath,
    line: int | None,
) -> tuple[str, Sequence[Path]]:
    """Carry out an operation; return the text for the model,
    and the files whose lines the text contains.
    """
    name = format_path(ctx.workspace, target.path)
    match params.operation:
        case "documentSymbols":
            rows = format_outline_rows(await fetch_outline(client, target.real))
            return "\n".join(rows) or f"{name} has no symbols.", ()
        case "workspaceSymbols":
            locations = await _find_symbols(client, params.symbol or "")
            # A server that is still indexing the project finds nothing;
            # it is asked again afterwards.
            if not locations and await client.progress.wait_for_end(LSP_REQUEST.seconds):
                locations = await _find_symbols(client, params.symbol or "")
            return format_locations(ctx, locations) or f"Nothing is named like {params.symbol}.", ()
        case "diagnostics":
            return await _format_diagnostics(client, target, name), ()
        case _:
            pass
    position = _make_position(ctx, params, client, target, line)
    if params.operation == "hover":
        await _check_definition(ctx, client, position, params.symbol or "")
        return await fetch_hover(client, position) or f"Nothing is known of {params.symbol}.", ()
    locations = await _request_locations(client, params.operation, position)
    if not locations:
        if not await client.progress.wait_for_end(LSP_REQUEST.seconds):
            # A server may answer before it has analysed the file; its diagnostics show that it has.
            await client.wait_for_diagnostics(target.real, LSP_DIAGNOSTICS_TIME.seconds)
        locations = await _request_locations(client, params.operation, position)
    if (
        params.operation in {"definition", "implementation"}
        and len(locations) <= MAX_WHOLE_DEFINITIONS
    ):
        locations = [await widen_location(ctx, client, location, target) for location in locations]
    files = [
        path
        for path in dict.fromkeys(location.path for location in locations)
        if is_free_location(ctx, path)
    ]
    return format_locations(
        ctx, locations
    ) or f"No {params.operation} of {params.symbol} found.", files


async def _find_symbols(client: LanguageClient, name: str) -> list[Location]:
    return [location for _, location in await find_workspace_symbols(client, name)]


async def _request_locations(
    client: LanguageClient, operation: str, position: JSON
) -> list[Location]:
    match operation:
        case "incomingCalls":
            return await find_calls(client, "incoming", position)
        case "outgoingCalls":
            return await find_calls(client, "outgoing", position)
        case "supertypes" | "subtypes":
            return await find_related_types(client, operation, position)
        case _:
            pass
    # The protocol requires this field of requests for references.
    context = {"context": {"includeDeclaration": True}} if operation == "references" else {}
    return await find_locations(client, operation, {**position, **context})


async def _check_definition(
    ctx: ToolContext, client: LanguageClient, position: JSON, symbol: str
) -> None:
    """Raise ToolFailure if the symbol is defined in a file that may not be read: hover
    text may contain its value.
    """
    if not client.has_capability("definitionProvider"):
        return
    for location in await find_locations(client, "definition", position):
        if ctx.workspace.contains(Path(os.path.realpath(location.path))) and not is_free_location(
            ctx, location.path
        ):
            where = f"{format_path(ctx.workspace, location.path)}:{location.line + 1}"
            raise ToolFailure(f"{symbol} is defined in {where}, which may not be read.")


def _make_position(
    ctx: ToolContext,
    params: LspParams,
    client: LanguageClient,
    target: ResolvedPath,
    line: int | None,
) -> JSON:
    """Return the parameters of a request about the symbol: the document and the position in it."""
    name = format_path(ctx.workspace, target.path)
    position = _find_position(
        client.documents[target.real].text, name, line or 1, params.symbol or ""
    )
    return make_position_params(client, target.real, position)


def _find_position(text: str, name: str, line: int, symbol: str) -> TextPosition:
    """Return the position of a symbol: on the given line, or else on the nearest one.
    Raises ToolFailure.
    """
    lines = split_lines(text)
    # The text has the last part of a qualified name alone: of `Rule.compile` or `net::Address`.
    word = symbol.rpartition(".")[2].rpartition("::")[2]
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    # Numbers of lines from 0, as in the protocol; `line` counts from 1.
    numbers = range(max(0, line - 1 - _NEAR_LINES), min(len(lines), line + _NEAR_LINES))
    for number in sorted(numbers, key=lambda number: abs(number - line + 1)):
        if match := pattern.search(lines[number]):
            return TextPosition(number, match.start())
    here = lines[line - 1].strip() if line <= len(lines) else "(beyond the end of the file)"
    raise ToolFailure(f"{symbol} is not on line {line} of {name}, which is: {here}")


async def _format_diagnostics(client: LanguageClient, target: ResolvedPath, name: str) -> str:
    """Return the errors and warnings of a file, a line each.
    Raises TimeoutError when the server reports none yet.
    """
    diagnostics = await client.wait_for_diagnostics(target.real, LSP_REQUEST.seconds)
    if diagnostics is None:
        raise TimeoutError
    serious = [each for each in diagnostics if each.severity <= WARNING]
    rows = [
        f"{'error' if each.severity < WARNING else 'warning'} {format_diagnostic(each, name)}"
        for each in serious
    ]
    return "\n".join(rows[: LSP_LOCATIONS_SHOWN.value]) or f"{name} has no errors and no warnings."
