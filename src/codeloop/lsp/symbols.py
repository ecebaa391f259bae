"""Queries about symbols: definitions, references, calls, outlines.
The tool `lsp` formats the answers.

A server's answer is not trusted: invalid parts are left out,
and its texts and paths are only shown.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from codeloop.kit.jsonc import is_list, is_object
from codeloop.lsp.client.client import LanguageClient
from codeloop.lsp.client.file_uri import parse_file_uri
from codeloop.lsp.client.text_positions import TextPosition, count_units, get_line, split_lines
from codeloop.schema.wire import JSON

# The protocol's numbers of symbol kinds are the indices.
_SYMBOL_KINDS = (
    *(
        "",
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
    ),
    *(
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
    ),
    *("enum member", "struct", "event", "operator", "type parameter"),
)
_MINOR_KINDS = frozenset(
    (
        "variable",
        "constant",
        "property",
        "field",
        "string",
        "number",
        "boolean",
        "array",
        "key",
        "null",
    )
)
# Bounds on an outline, since a broken server may send one without end.
_MAX_DEPTH = 8
_MAX_SYMBOLS = 5_000


class Location(Struct, frozen=True):
    """A range of lines of a file, from 0; `end` is the last.
    `name`: of the symbol there, "" if it is not known.
    """

    path: Path
    line: int
    end: int
    name: str = ""


class OutlineRow(Struct, frozen=True):
    """A symbol of a file: its name and kind, its lines from 0, and how deep it is nested."""

    name: str
    kind: str
    line: int
    end: int
    depth: int

    @property
    def is_minor(self) -> bool:
        """Whether an outline can omit it if it is nested."""
        return self.kind in _MINOR_KINDS


def make_position_params(client: LanguageClient, path: Path, position: TextPosition) -> JSON:
    """Make the parameters of a request about a position."""
    line = get_line(split_lines(client.documents[path].text), position.line)
    character = count_units(line[: position.column], client.encoding)
    return {
        "textDocument": {"uri": path.as_uri()},
        "position": {"line": position.line, "character": character},
    }


async def find_locations(client: LanguageClient, method: str, params: JSON) -> list[Location]:
    """Return the locations that a request finds (definition, references, implementation).
    Raises as a request does.
    """
    result = await client.request(f"textDocument/{method}", params)
    rows: list[Any] = result if is_list(result) else [result]
    return _drop_duplicates(
        location for row in rows if (location := _parse_location(row)) is not None
    )


async def fetch_hover(client: LanguageClient, params: JSON) -> str:
    """Return the text that a server shows for the name at a position (type, documentation);
    "" if it has none.
    """
    result = await client.request("textDocument/hover", params)
    return _join_text(result.get("contents") if is_object(result) else None).strip()


async def fetch_outline(client: LanguageClient, path: Path) -> list[OutlineRow]:
    """Return the symbols of a file, in its order."""
    result = await client.request(
        "textDocument/documentSymbol", {"textDocument": {"uri": path.as_uri()}}
    )
    return list(_list_outline_rows(result if is_list(result) else [], 0))[:_MAX_SYMBOLS]


async def find_workspace_symbols(client: LanguageClient, query: str) -> list[tuple[JSON, Location]]:
    """Return the symbols of the project that match a query: each as the server sent it,
    and its location.
    """
    result = await client.request("workspace/symbol", {"query": query})
    symbols: list[tuple[JSON, Location]] = []
    for row in result if is_list(result) else []:
        location = _parse_location(row.get("location")) if is_object(row) else None
        if location is not None:
            symbols.append(
                (
                    row,
                    Location(
                        location.path, location.line, location.end, str(row.get("name") or "")
                    ),
                )
            )
    return symbols


async def find_calls(
    client: LanguageClient, direction: Literal["incoming", "outgoing"], params: JSON
) -> list[Location]:
    """Return the places that call a function (incoming) or where it calls others (outgoing),
    named by the other one.
    """
    return await _find_hierarchy(
        client, "textDocument/prepareCallHierarchy", f"callHierarchy/{direction}Calls", params
    )


async def find_related_types(
    client: LanguageClient, direction: Literal["supertypes", "subtypes"], params: JSON
) -> list[Location]:
    """Return the types that a type derives from, or those that derive from it."""
    return await _find_hierarchy(
        client, "textDocument/prepareTypeHierarchy", f"typeHierarchy/{direction}", params
    )


async def _find_hierarchy(
    client: LanguageClient, prepare: str, method: str, params: JSON
) -> list[Location]:
    """Ask for the items at a position by the method `prepare`,
    then for the relatives of each by `method`.
    """
    items = await client.request(prepare, params)
    locations: list[Location] = []
    for item in items if is_list(items) else []:
        path = parse_file_uri(item.get("uri")) if is_object(item) else None
        rows = await client.request(method, {"item": item})
        for row in rows if is_list(rows) else []:
            if is_object(row) and path is not None:
                locations += _list_hierarchy_locations(row, path)
    return _drop_duplicates(locations)


def _drop_duplicates(locations: Iterable[Location]) -> list[Location]:
    return list(dict.fromkeys(locations))


def _parse_location(row: Any) -> Location | None:
    """Parse a Location or a LocationLink of the protocol; None when it is invalid."""
    if not is_object(row):
        return None
    path = parse_file_uri(row.get("uri") or row.get("targetUri"))
    name_range: Any = row.get("range") or row.get("targetSelectionRange") or row.get("targetRange")
    target_range: Any = row.get("targetRange") or name_range
    try:
        first, last = int(name_range["start"]["line"]), int(target_range["end"]["line"])
    except (KeyError, TypeError, ValueError):
        return None
    return None if path is None or first < 0 else Location(path, first, max(first, last))


def _list_hierarchy_locations(row: JSON, path: Path) -> Iterator[Location]:
    """Yield the locations of a call or a type. Outgoing calls are in the file of the request,
    `path`.
    """
    # An incoming call has `from`, an outgoing one `to`; a type is the item itself.
    item = row.get("from") or row.get("to") or row
    symbol: JSON = item if is_object(item) else {}
    symbol_path = path if "to" in row else parse_file_uri(symbol.get("uri"))
    name = str(symbol.get("name") or "")
    ranges = row.get("fromRanges")
    name_ranges: list[Any] = ranges if is_list(ranges) else [symbol.get("selectionRange")]
    for name_range in name_ranges:
        try:
            line = int(name_range["start"]["line"])
        except (KeyError, TypeError, ValueError):
            continue
        if symbol_path is not None:
            yield Location(symbol_path, line, line, name)


def _list_outline_rows(symbols: Sequence[Any], depth: int) -> Iterator[OutlineRow]:
    for symbol in symbols:
        if not is_object(symbol):
            continue
        location = symbol.get("location")
        # A DocumentSymbol has ranges of its own, a SymbolInformation has a location.
        whole_range: Any = symbol.get("range") or (
            location.get("range") if is_object(location) else None
        )
        name_range: Any = symbol.get("selectionRange") or whole_range
        try:
            line, end = int(name_range["start"]["line"]), int(whole_range["end"]["line"])
            kind_number = int(symbol.get("kind") or 0)
        except (KeyError, TypeError, ValueError):
            continue
        yield OutlineRow(
            name=str(symbol.get("name") or ""),
            kind=_SYMBOL_KINDS[kind_number] if 0 <= kind_number < len(_SYMBOL_KINDS) else "",
            line=line,
            end=max(line, end),
            depth=depth,
        )
        children = symbol.get("children")
        if is_list(children) and depth < _MAX_DEPTH:
            yield from _list_outline_rows(children, depth + 1)


def _join_text(contents: Any) -> str:
    if is_list(contents):
        return "\n".join(_join_text(each) for each in contents)
    if is_object(contents):
        return str(contents.get("value") or "")
    return contents if isinstance(contents, str) else ""
