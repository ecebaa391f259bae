"""Applies the text edits that a language server answers a rename with.
The answer is not trusted: it may be invalid.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codeloop.kit.jsonc import is_list, is_object
from codeloop.lsp.client.client import LanguageClient
from codeloop.lsp.client.file_uri import parse_file_uri
from codeloop.lsp.client.text_positions import find_index, split_lines
from codeloop.schema.wire import JSON


def parse_workspace_edit(result: Any) -> dict[Path, list[JSON]] | None:
    """Return the edits of a workspace edit by file;
    None: it also creates or moves files, or is invalid.

    Empty if the server answers none (null).
    """
    if not is_object(result):
        return {}
    edits_by_path: dict[Path, list[JSON]] = {}
    changes, documents = result.get("changes"), result.get("documentChanges")
    pairs: list[tuple[Any, Any]] = list(changes.items()) if is_object(changes) else []
    for row in documents if is_list(documents) else []:
        if not is_object(row) or "kind" in row or not is_object(row.get("textDocument")):
            return None
        pairs.append((row["textDocument"].get("uri"), row.get("edits")))
    for uri, edits in pairs:
        path = parse_file_uri(uri)
        if path is None or not is_list(edits):
            return None
        edits_by_path.setdefault(path, []).extend(edit for edit in edits if is_object(edit))
    return edits_by_path


def apply_edits(client: LanguageClient, text: str, edits: Sequence[JSON]) -> str:
    """Return a text with edits applied, whose ranges all refer to the original text.
    Raises ValueError.
    """
    lines = split_lines(text)
    line_offsets = [0]
    for line in lines:
        line_offsets.append(line_offsets[-1] + len(line))

    def find_offset(position: Any) -> int:
        number = int(position["line"])
        if number >= len(lines):
            return len(text)
        if number < 0:
            raise ValueError("an edit before the first line")
        return line_offsets[number] + find_index(
            lines[number], int(position["character"]), client.encoding
        )

    try:
        replacements = [
            (
                find_offset(each["range"]["start"]),
                find_offset(each["range"]["end"]),
                str(each["newText"]),
            )
            for each in edits
        ]
    except (KeyError, TypeError) as error:
        raise ValueError("an edit without a range") from error
    pieces, offset = list[str](), 0
    for start, end, new_text in sorted(replacements):
        if not offset <= start <= end:
            raise ValueError("edits that overlap")
        pieces += (text[offset:start], new_text)
        offset = end
    return "".join((*pieces, text[offset:]))
