"""Searches for the dependents of edited files: other files, which an edit may break."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from codeloop.lsp.client.client import LanguageClient
from codeloop.lsp.client.document import read_text
from codeloop.lsp.server import LanguageServer

# How often the dependents of an edited file are searched for, if the search is too slow to finish.
_MAX_SEARCHES = 2


class DependentSearch:
    """The searches for one server."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._counts = Counter[Path]()
        """How often the dependents of each file were searched for;
        `_MAX_SEARCHES` once they were found.
        """

    def forget(self) -> None:
        """Forget which files were searched for, so that each is again."""
        self._counts.clear()

    async def find_texts(self, client: LanguageClient, edited: Sequence[Path]) -> dict[Path, str]:
        """Return the texts of the edited files' dependents.

        Those of each file are searched for once; a second time if the first search
        was too slow to finish.
        """
        if not client.looks_across_files:
            return {}
        paths = [path for path in edited if self._counts[path] < _MAX_SEARCHES]
        row, texts = self._server.choice.row, dict[Path, str]()
        searches = await asyncio.gather(
            *(self._server.callbacks.find_dependents(path, row) for path in paths)
        )
        for path, dependents in zip(paths, searches, strict=True):
            self._counts[path] = self._counts[path] + 1 if dependents is None else _MAX_SEARCHES
            for dependent in dependents or ():
                if dependent not in client.documents and (text := read_text(dependent)) is not None:
                    texts[dependent] = text
        return texts
