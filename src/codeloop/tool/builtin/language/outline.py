"""The outline of a long file, from a server that runs anyway."""

import asyncio
from contextlib import suppress
from pathlib import Path

from codeloop.lsp.client.connection import ErrorAnswer, ServerGone
from codeloop.lsp.client.document import on_disk
from codeloop.lsp.languages import Languages
from codeloop.lsp.server import ServerUnavailable
from codeloop.lsp.symbols import OutlineRow, outline
from codeloop.schema.bounds.language import LSP_OUTLINE, LSP_OUTLINE_WAIT


async def read_outline(languages: Languages, path: Path) -> str:
    """Return the outline of a file as it follows its first lines; "" when no server that runs knows it in time."""
    text = on_disk(path)
    for news in await languages.of(path) if text is not None else []:
        client = news.server.client
        if client is None or not client.can("documentSymbolProvider"):
            continue
        with suppress(ErrorAnswer, ServerGone, ServerUnavailable, TimeoutError):
            async with asyncio.timeout(LSP_OUTLINE_WAIT.seconds):
                client = await news.showing(path, text or "")
                rows = outline_rows(await outline(client, path))
                return "\n\nOutline:\n" + "\n".join(rows) if rows else ""
    return ""


def outline_rows(rows: list[OutlineRow]) -> list[str]:
    """Return an outline for a model: `12-40: class Name`, nested by spaces, without the small things inside others."""
    kept = [each for each in rows if not (each.depth and each.is_minor)]
    found = [f"{'  ' * each.depth}{each.line + 1}-{each.end + 1}: {each.kind} {each.name}" for each in kept]
    rest = len(found) - LSP_OUTLINE.value
    return [*found[: LSP_OUTLINE.value], *([f"({rest} more)"] if rest > 0 else [])]
