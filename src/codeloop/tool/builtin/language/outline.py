"""Formats the outline of a file that a language server gives, for the model."""

from codeloop.lsp.symbols import OutlineRow
from codeloop.schema.bounds.language import LSP_OUTLINE


def format_outline_rows(rows: list[OutlineRow]) -> list[str]:
    """Return a line for each symbol: `12-40: class Name`, indented by its depth. Local variables are left out."""
    shown_rows = [each for each in rows if not (each.depth and each.is_minor)]
    lines = [f"{'  ' * each.depth}{each.line + 1}-{each.end + 1}: {each.kind} {each.name}" for each in shown_rows]
    more = len(lines) - LSP_OUTLINE.value
    return [*lines[: LSP_OUTLINE.value], *([f"({more} more)"] if more > 0 else [])]
