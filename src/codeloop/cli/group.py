"""Groups of commands: help that is never cut, suggestions for a word that is not known, commands loaded when called."""

from collections.abc import Callable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from codeloop.cli.lazy import load
from codeloop.kit.suggest import meant, near


class Group(click.Group):
    """A group whose help shows each command's first sentence in full."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was called. Raises UsageError with what may be meant."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            names = near(name, self.list_commands(ctx), parts=True)
            raise click.UsageError(f"There is no command {name}.{meant(names)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table."""
        rows = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.get_short_help_str(_UNCUT)) for name, row in rows if row is not None])


_UNCUT = 10_000
"""Characters: more than any sentence has."""


class LazyGroup(Group):
    """A group that imports a command's module only when it is called; help and completion need none of them.

    `rows`: by name, where the command is (`module:name`) and what it does.
    """

    def __init__(self, *args: Any, rows: Mapping[str, tuple[str, str]], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._rows = rows

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order."""
        del ctx
        return list(self._rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        del ctx
        row = self._rows.get(cmd_name)
        if row is None:
            return None
        return load(row[0])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._rows.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with what is typed, and the options."""
        names = [name for name in self._rows if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self._rows[name][1]) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


COMPLETED = {
    "session": "completion.sessions:current",
    "archived": "completion.sessions:archived",
    "agent": "completion.configured:agents",
    "command": "completion.configured:commands",
    "model": "completion.configured:models",
}


def completed(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]:
    """Return what completes a parameter that takes one of `COMPLETED`."""
    return lambda _context, _parameter, typed: load(COMPLETED[kind])(typed)
