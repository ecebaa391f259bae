"""Formats a language server's outline of a file for the model."""

from codeloop.lsp.symbols import OutlineRow
from codeloop.schema.bounds.language import LSP_OUTLINE


def outline_rows(rows: list[OutlineRow]) -> list[str]:
    """Format an outline: `12-40: class Name`, nested by spaces, without local variables and the like."""
    shown_rows = [each for each in rows if not (each.depth and each.is_minor)]
    lines = [f"{'  ' * each.depth}{each.line + 1}-{each.end + 1}: {each.kind} {each.name}" for each in shown_rows]
    more = len(lines) - LSP_OUTLINE.value
    return [*lines[: LSP_OUTLINE.value], *([f"({more} more)"] if more > 0 else [])]
