"""Queries on symbols: definitions, references, calls, outlines, renames."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.kit.jsonc import is_list, is_object
from codeloop.lsp.client.client import LanguageClient, path_of
from codeloop.lsp.client.text import index_at, lines_of, units
from codeloop.schema.wire import JSON

KINDS = (
    *("", "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum"),
    *("interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null"),
    *("enum member", "struct", "event", "operator", "type parameter"),
)
_MINOR = frozenset(("variable", "constant", "property", "field", "string", "number", "boolean", "array", "key", "null"))
_DEPTH = 8
_SYMBOLS = 5_000


class TextPosition(Struct, frozen=True):
    """A place in a text: line and column from 0, the column in characters."""

    line: int
    column: int


class Spot(Struct, frozen=True):
    """Lines of a file, from 0; `end` is the last. `name`: whose place that is, "" when the server does not say."""

    path: Path
    line: int
    end: int
    name: str = ""


class OutlineRow(Struct, frozen=True):
    """A symbol of a file: its lines from 0, what it is, and how deep it is nested."""

    name: str
    kind: str
    line: int
    end: int
    depth: int

    @property
    def is_minor(self) -> bool:
        """Return whether an outline can omit it when nested."""
        return self.kind in _MINOR


def place_of(client: LanguageClient, path: Path, at: TextPosition) -> JSON:
    """Return a position in requests' form."""
    line = _line_at(lines_of(client.documents[path].text), at.line)
    character = units(line[: at.column], client.encoding)
    return {"textDocument": {"uri": path.as_uri()}, "position": {"line": at.line, "character": character}}


async def spots(client: LanguageClient, method: str, params: JSON) -> list[Spot]:
    """Return the locations that a request finds (definition, references, implementation). Raises as a request does."""
    result = await client.request(f"textDocument/{method}", params)
    rows: list[Any] = result if is_list(result) else [result]
    return _unique(spot for row in rows if (spot := _spot(row)) is not None)


async def hover(client: LanguageClient, params: JSON) -> str:
    """Return the hover text of a name."""
    result = await client.request("textDocument/hover", params)
    return _text(result.get("contents") if is_object(result) else None).strip()


async def outline(client: LanguageClient, path: Path) -> list[OutlineRow]:
    """Return the symbols of a file, in its order."""
    result = await client.request("textDocument/documentSymbol", {"textDocument": {"uri": path.as_uri()}})
    return list(_rows(result if is_list(result) else [], 0))[:_SYMBOLS]


async def workspace_symbols(client: LanguageClient, query: str) -> list[tuple[JSON, Spot]]:
    """Return the symbols of the project whose names fit, each as the server has it and where it is."""
    result = await client.request("workspace/symbol", {"query": query})
    symbols: list[tuple[JSON, Spot]] = []
    for row in result if is_list(result) else []:
        spot = _spot(row.get("location")) if is_object(row) else None
        if spot is not None:
            symbols.append((row, Spot(spot.path, spot.line, spot.end, str(row.get("name") or ""))))
    return symbols


async def hierarchy(client: LanguageClient, kind: str, way: str, params: JSON) -> list[Spot]:
    """Return who calls a name or what it calls (`kind` call, `way` incoming or outgoing), its super- or subtypes."""
    items = await client.request(f"textDocument/prepare{kind}Hierarchy", params)
    spots: list[Spot] = []
    for item in items if is_list(items) else []:
        path = path_of(item.get("uri")) if is_object(item) else None
        method = f"{kind.lower()}Hierarchy/{way}{'Calls' if kind == 'Call' else ''}"
        rows = await client.request(method, {"item": item})
        for row in rows if is_list(rows) else []:
            if is_object(row) and path is not None:
                spots += _of_hierarchy(row, path)
    return _unique(spots)


def edits_of(result: Any) -> dict[Path, list[JSON]] | None:
    """Return the edits of a workspace edit by file; None: it does more than edit files, or is invalid."""
    if not is_object(result):
        return {}
    found: dict[Path, list[JSON]] = {}
    changes, documents = result.get("changes"), result.get("documentChanges")
    pairs: list[tuple[Any, Any]] = list(changes.items()) if is_object(changes) else []
    for row in documents if is_list(documents) else []:
        if not is_object(row) or "kind" in row or not is_object(row.get("textDocument")):
            return None
        pairs.append((row["textDocument"].get("uri"), row.get("edits")))
    for uri, edits in pairs:
        path = path_of(uri)
        if path is None or not is_list(edits):
            return None
        found.setdefault(path, []).extend(edit for edit in edits if is_object(edit))
    return found


def apply_edits(client: LanguageClient, text: str, edits: Sequence[JSON]) -> str:
    """Return a text with edits made, all of which are about the text as it was. Raises ValueError."""
    lines = lines_of(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(position: Any) -> int:
        number = int(position["line"])
        if number >= len(lines):
            return len(text)
        if number < 0:
            raise ValueError("an edit before the first line")
        return starts[number] + index_at(lines[number], int(position["character"]), client.encoding)

    try:
        rows = [(offset(each["range"]["start"]), offset(each["range"]["end"]), str(each["newText"])) for each in edits]
    except (KeyError, TypeError) as error:
        raise ValueError("an edit without a place") from error
    pieces, done = list[str](), 0
    for start, end, new in sorted(rows):
        if not done <= start <= end:
            raise ValueError("edits that overlap")
        pieces += (text[done:start], new)
        done = end
    return "".join((*pieces, text[done:]))


def _line_at(lines: Sequence[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""


def _unique(spots: "Iterator[Spot] | list[Spot]") -> list[Spot]:
    return list(dict.fromkeys(spots))


def _spot(row: Any) -> Spot | None:
    """Return the place of a Location or a LocationLink."""
    if not is_object(row):
        return None
    path = path_of(row.get("uri") or row.get("targetUri"))
    own: Any = row.get("range") or row.get("targetSelectionRange") or row.get("targetRange")
    target_range: Any = row.get("targetRange") or own
    try:
        first, last = int(own["start"]["line"]), int(target_range["end"]["line"])
    except (KeyError, TypeError, ValueError):
        return None
    return None if path is None or first < 0 else Spot(path, first, max(first, last))


def _of_hierarchy(row: JSON, path: Path) -> Iterator[Spot]:
    """Yield the places of a call, or that of a type. Calls that go out are places in the file that was asked about."""
    item = row.get("from") or row.get("to") or row
    other: JSON = item if is_object(item) else {}
    where = path if "to" in row else path_of(other.get("uri"))
    name = str(other.get("name") or "")
    ranges = row.get("fromRanges")
    places: list[Any] = ranges if is_list(ranges) else [other.get("selectionRange")]
    for range_ in places:
        try:
            line = int(range_["start"]["line"])
        except (KeyError, TypeError, ValueError):
            continue
        if where is not None:
            yield Spot(where, line, line, name)


def _rows(symbols: Sequence[Any], depth: int) -> Iterator[OutlineRow]:
    for symbol in symbols:
        if not is_object(symbol):
            continue
        location = symbol.get("location")
        range_: Any = symbol.get("range") or (location.get("range") if is_object(location) else None)
        selection_range: Any = symbol.get("selectionRange") or range_
        try:
            line, end, kind = (
                int(selection_range["start"]["line"]),
                int(range_["end"]["line"]),
                int(symbol.get("kind") or 0),
            )
        except (KeyError, TypeError, ValueError):
            continue
        name = KINDS[kind] if 0 <= kind < len(KINDS) else ""
        yield OutlineRow(str(symbol.get("name") or ""), name, line, max(line, end), depth)
        children = symbol.get("children")
        if is_list(children) and depth < _DEPTH:
            yield from _rows(children, depth + 1)


def _text(contents: Any) -> str:
    if is_list(contents):
        return "\n".join(_text(each) for each in contents)
    if is_object(contents):
        return str(contents.get("value") or "")
    return contents if isinstance(contents, str) else ""
