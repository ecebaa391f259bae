"""What can stand in the place of what is typed, best first."""

from codeloop.schema.tui_limits import PROMPT_FOUND
from codeloop.tui.prompt.completion import Completer, CompletionRow, PromptCommand
from codeloop.tui.prompt.completions.fuzzy import fit, ranked
from codeloop.tui.prompt.completions.trigger import Trigger, mention
from codeloop.tui.prompt.store import PromptStore

_SYMBOL = 2
"""Letters from which on symbols are looked for."""
_USED = 5
"""Names that were mentioned before and are offered first."""


class Candidates:
    """Keeps the last answers of a completer, so that there is something to show at once."""

    def __init__(self, completer: Completer, store: PromptStore) -> None:
        self.commands: list[PromptCommand] = []
        self._completer = completer
        self._store = store
        self._agents: list[CompletionRow] = []
        self._resources: list[CompletionRow] = []
        self._files: list[str] = []
        self._symbols: list[CompletionRow] = []

    def rows(self, now: Trigger) -> tuple[list[CompletionRow], int]:
        """Return what fits, and which row is chosen at first: none where only a usage is shown."""
        if now.kind == "arguments":
            return [_command(row) for row in self.commands if row.name == now.query and row.arguments], -1
        if now.kind == "command":
            known = {row.name: row for row in self.commands}
            return [_command(known[name]) for name in ranked(now.query, known)], 0
        return self._mentions(now), 0

    async def load(self, now: Trigger) -> None:
        """Ask anew for what there is of a kind, when it begins to be typed."""
        if now.kind == "mention":
            self._agents = await self._completer.agents()
            self._resources = await self._completer.resources()
        else:
            self.commands = await self._completer.commands()

    async def search(self, query: str) -> None:
        """Ask for files and symbols."""
        files = await self._completer.files(query)
        symbols = await self._completer.symbols(query) if len(query) >= _SYMBOL else []
        self._files, self._symbols = files, symbols

    def forget(self) -> None:
        """Forget what was found for another word."""
        self._files, self._symbols = [], []

    def _mentions(self, now: Trigger) -> list[CompletionRow]:
        known = {row.label: row for row in self._agents}
        agents = [known[name] for name in ranked(now.query, known)]
        names = list(dict.fromkeys([*self._used(now.query, known), *self._files]))
        order = {name: at - 2 * min(self._store.weight(name), _USED) for at, name in enumerate(names)}
        files = [
            CompletionRow(mention(name, now.range), "folder" if name.endswith("/") else "file", name)
            for name in sorted(names, key=order.__getitem__)
            if fit(now.query, name) is not None
        ]
        symbols = [row for row in self._symbols if fit(now.query, row.label) is not None]
        offered = {row.label: row for row in self._resources}
        resources = [offered[name] for name in ranked(now.query, offered)]
        rows = [*agents, *files, *symbols, *resources] if now.query else [*files, *agents, *resources]
        return rows[: PROMPT_FOUND.value]

    def _used(self, query: str, agents: dict[str, CompletionRow]) -> list[str]:
        used = [name for name in self._store.mentions() if name not in agents and fit(query, name) is not None]
        return sorted(used, key=self._store.weight, reverse=True)[:_USED]


def _command(row: PromptCommand) -> CompletionRow:
    return CompletionRow(f"/{row.name}", "command", f"/{row.name} {row.arguments}".rstrip(), row.text)
