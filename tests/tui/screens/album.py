"""Snapshots of what the UI shows, at two sizes, in a dark and in a light theme,
compared with those that are kept.

CODELOOP_GOLDEN=write renews the files: read the diff.
CODELOOP_PICTURES=FOLDER draws each screen: look at them.
"""

import os
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any, Literal

from codeloop.tui.widgets.sidebar import Sidebar
from scripts.terminal_svg import draw_svg
from tests.tui.screens.snapshot import written
from tests.tui.stored.client import StoredClient
from tests.tui.stored.play import Stored

GOLDEN = Path(__file__).parent / "golden"
WIDE = 140
SIZES = ((80, 24), (WIDE, 45))
Mode = Literal["dark", "light"]
SERVERS = {
    "time": {"status": "connected"},
    "notes": {"status": "connected", "state": "known"},
    "tracker": {"status": "needs_auth"},
    "browser": {
        "status": "failed",
        "error": "npx ended with code 127 before it answered: there is no such program",
    },
    "mail": {"status": "disabled"},
}
LANGUAGES = [
    {"id": "pyright", "name": "pyright", "root": ".", "status": "connected"},
    {
        "id": "eslint",
        "name": "eslint",
        "root": ".",
        "status": "error",
        "error": "it ended three times",
    },
]
KEYS = {name: [{"type": "api", "label": "API key"}] for name in ("anthropic", "openai")}
"""The services that take a key."""


def told() -> StoredClient:
    """Return a client over the stored project, whose servers do all that servers do."""
    client = StoredClient()
    client.answers |= {"mcp.status": SERVERS, "lsp.status": LANGUAGES, "provider.auth": KEYS}
    return client


class Album:
    """Takes snapshots of what is shown, and compares them with those that are kept."""

    def __init__(self, it: Stored) -> None:
        self._it = it
        self.wrong: list[str] = []

    async def take(
        self,
        name: str,
        *texts: str,
        beside: str = "",
        sizes: Sequence[tuple[int, int]] = SIZES,
        theme: str = "codeloop",
        is_at_rest: bool = True,
    ) -> None:
        """Take one at each size and in each mode of a theme, once the texts are there;
        `beside`: where it is wide.

        `is_at_rest`: nothing is being loaded, and no dialog waits for another.
        """
        it = self._it
        for columns, rows in sizes:
            await it.pilot.resize_terminal(columns, rows)
            taken: dict[str, Any] = {}
            modes: tuple[Mode, ...] = ("light", "dark")
            for mode in modes:
                it.ui.appearance.mode = mode
                it.ui.appearance.use_theme(theme)
                it.ui.restyle()
                await it.sees(*texts, beside if columns == WIDE else "")
                await it.settle(
                    lambda wide=columns == WIDE: not wide or it.ui.query_one(Sidebar).data.lsp
                )
                await it.settle(
                    lambda: not is_at_rest or all(worker.is_finished for worker in it.ui.workers)
                )
                taken[mode] = await it.steady()
                if folder := os.environ.get("CODELOOP_PICTURES"):
                    picture = draw_svg(
                        [(taken[mode], 1)], it.ui.appearance.styles.theme.background, name
                    )
                    (Path(folder) / f"{name}-{columns}-{mode}.svg").write_text(picture)
            self._compare(f"{name}-{columns}", written(taken["dark"], taken["light"]))

    def _compare(self, name: str, text: str) -> None:
        file = GOLDEN / f"{name}.txt"
        if os.environ.get("CODELOOP_GOLDEN") == "write":
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            before = file.read_text() if file.exists() else ""
            self.wrong += unified_diff(
                before.splitlines(), text.splitlines(), name, "now", lineterm="", n=1
            )
