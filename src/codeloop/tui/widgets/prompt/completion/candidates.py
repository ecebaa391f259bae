"""The candidates of a completion: loads them, and lists those that match what is typed,
best first.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from codeloop.schema.bounds.tui import PROMPT_FOUND
from codeloop.tui.widgets.prompt.completion.completer import Completer, CompletionRow, PromptCommand
from codeloop.tui.widgets.prompt.completion.trigger import Trigger, format_mention
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore

_MIN_SYMBOL_LETTERS = 2
"""Letters from which symbols are searched for: one letter matches too many."""
_MAX_EARLIER = 5
"""Mentions of earlier prompts that are offered, and how many mentions of one file count
for its place in the list.
"""


class ArgumentValues(Struct, frozen=True):
    """The values that complete the last argument of a command, as its source answered.

    `arguments`: the text after the command's name for which it answered;
    `base`: the part of it before the value;
    `argument`: the argument's name.
    """

    command: str = ""
    arguments: str = ""
    base: str = ""
    argument: str = ""
    values: tuple[str, ...] = ()

    def list_rows(self, trigger: Trigger) -> list[CompletionRow]:
        """Return the values for the current text; until the source has answered again,
        those that still match.
        """
        if trigger.query != self.command or not trigger.arguments.startswith(self.base):
            return []
        typed_value = trigger.arguments[len(self.base) :]
        # For the text that the source has answered for,
        # it may know values that do not begin with it.
        matches: Sequence[str] = self.values
        if trigger.arguments != self.arguments:
            matches = [each for each in self.values if each.startswith(typed_value)]
        return [
            CompletionRow(f"/{self.command} {self.base}{value}", "argument", value, self.argument)
            for value in matches
        ]


class Candidates:
    """Keeps the last answers of a completer, so that rows can be shown at once
    while it is asked again.
    """

    def __init__(self, completer: Completer, store: PromptStore) -> None:
        self.commands: list[PromptCommand] = []
        self._completer = completer
        self._store = store
        self._agents: list[CompletionRow] = []
        self._resources: list[CompletionRow] = []
        self._files: list[str] = []
        self._symbols: list[CompletionRow] = []
        self._values = ArgumentValues()

    def list_rows(self, trigger: Trigger) -> tuple[list[CompletionRow], int]:
        """Return the matching rows, and the index of the one under the cursor;
        -1: none, as for a usage to be read.
        """
        if trigger.kind == "arguments" and (values := self._values.list_rows(trigger)):
            return values, -1
        if trigger.kind == "arguments":
            # The usage of the command, while its arguments are typed.
            commands = [
                each for each in self.commands if each.name == trigger.query and each.arguments
            ]
            return [_make_command_row(command) for command in commands], -1
        if trigger.kind == "command":
            commands_by_name = {command.name: command for command in self.commands}
            names = rank_names(trigger.query, commands_by_name)
            return [_make_command_row(commands_by_name[name]) for name in names], 0
        return self._list_mentions(trigger), 0

    async def load(self, trigger: Trigger) -> None:
        """Reload the candidates of the trigger's kind; called when a word of that kind is begun."""
        if trigger.kind == "mention":
            self._agents = await self._completer.list_agents()
            self._resources = await self._completer.list_resources()
        else:
            self.commands = await self._completer.list_commands()

    def has_completable_argument(self, trigger: Trigger) -> bool:
        """Return whether the typed arguments can be completed."""
        return trigger.kind == "arguments" and any(
            command.name == trigger.query and command.completes_arguments
            for command in self.commands
        )

    async def load_values(self, trigger: Trigger, *, may_start_server: bool = False) -> None:
        """Load the values of the typed argument; `may_start_server`: a server that is
        not connected is started.
        """
        completion = await self._completer.complete_argument(
            trigger.query, trigger.arguments, may_start_server=may_start_server
        )
        base = trigger.arguments[: len(trigger.arguments) - len(completion.replaces)]
        self._values = ArgumentValues(
            command=trigger.query,
            arguments=trigger.arguments,
            base=base,
            argument=completion.argument,
            values=tuple(completion.values),
        )

    async def search(self, query: str) -> None:
        """Load the files and symbols that match a query."""
        files = await self._completer.find_files(query)
        symbols = (
            await self._completer.find_symbols(query) if len(query) >= _MIN_SYMBOL_LETTERS else []
        )
        self._files, self._symbols = files, symbols

    def clear(self) -> None:
        """Drop the files, symbols and values of the previous word."""
        self._files, self._symbols = [], []
        self._values = ArgumentValues()

    def _list_mentions(self, trigger: Trigger) -> list[CompletionRow]:
        agents_by_label = {row.label: row for row in self._agents}
        agents = [agents_by_label[name] for name in rank_names(trigger.query, agents_by_label)]
        names = list(
            dict.fromkeys(
                [*self._list_earlier_mentions(trigger.query, agents_by_label), *self._files]
            )
        )
        # Each mention in an earlier prompt moves a file up by two rows, up to ten.
        order = {
            name: index - 2 * min(self._store.compute_mention_weight(name), _MAX_EARLIER)
            for index, name in enumerate(names)
        }
        files = [
            CompletionRow(
                format_mention(name, trigger.range),
                "folder" if name.endswith("/") else "file",
                name,
            )
            for name in sorted(names, key=order.__getitem__)
            if score_match(trigger.query, name) is not None
        ]
        symbols = [
            row for row in self._symbols if score_match(trigger.query, row.label) is not None
        ]
        resources_by_label = {row.label: row for row in self._resources}
        resources = [
            resources_by_label[name] for name in rank_names(trigger.query, resources_by_label)
        ]
        rows = (
            [*agents, *files, *symbols, *resources]
            if trigger.query
            else [*files, *agents, *resources]
        )
        return rows[: PROMPT_FOUND.value]

    def _list_earlier_mentions(self, query: str, agents: dict[str, CompletionRow]) -> list[str]:
        mentions = [
            name
            for name in self._store.read_mentions()
            if name not in agents and score_match(query, name) is not None
        ]
        return sorted(mentions, key=self._store.compute_mention_weight, reverse=True)[:_MAX_EARLIER]


def _make_command_row(command: PromptCommand) -> CompletionRow:
    usage = f"/{command.name} {command.arguments}".rstrip()
    return CompletionRow(
        text=f"/{command.name}", kind="command", label=usage, detail=command.description
    )


def score_match(query: str, name: str) -> float | None:
    """Return a name's score, higher is better; None: it does not contain the
    query's letters in order.
    """
    query_text, text = query.lower(), name.lower()
    if not query_text:
        return 0.0
    # Four kinds of matches: at the start, at the start of a word, anywhere, with gaps.
    # Within one, shorter names win.
    shortness = 1.0 / (1 + len(text))
    if text.startswith(query_text):
        return 4.0 + shortness
    start = text.find(query_text)
    if start >= 0:
        return (3.0 if not text[start - 1].isalnum() else 2.0) + shortness
    last = -1
    gaps = 0
    for letter in query_text:
        index = text.find(letter, last + 1)
        if index < 0:
            return None
        gaps += index - last - 1
        last = index
    return 1.0 / (1 + gaps) + shortness


def rank_names(query: str, names: Iterable[str]) -> list[str]:
    """Return the matching names, best first; ties keep their order."""
    scores = {name: score for name in names if (score := score_match(query, name)) is not None}
    return sorted(scores, key=scores.__getitem__, reverse=True)
