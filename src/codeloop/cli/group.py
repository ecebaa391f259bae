"""click groups for commands with subcommands, and the text of usage errors.

Their help shows whole sentences, a command's module is loaded when it is called,
and unknown names get suggestions.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from codeloop.kit.entry_points import find_entry_points
from codeloop.kit.lazy import load_object
from codeloop.kit.text.suggest import format_suggestion
from codeloop.kit.text.terminal_text import escape_controls

# In characters: click cuts help texts to 45, and takes a number, not a way to turn that off.
_UNLIMITED_WIDTH = 10_000


class CommandGroup(click.Group):
    """A group whose help shows each command's first sentence in full."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was called. Raises UsageError with similar names."""
        name = args[0]
        # click reports unknown options itself.
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from codeloop.cli.suggestions import suggest_commands

            names = suggest_commands(self, ctx, name)
            raise click.UsageError(f"Unknown command: {name}.{format_suggestion(names)}", ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were defined."""
        # click sorts them by the alphabet.
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        with formatter.section("Commands"):
            rows = [(name, self.get_short_help(ctx, name)) for name in self.list_commands(ctx)]
            # A command without help is one that is not installed.
            formatter.write_dl([row for row in rows if row[1]])

    def get_short_help(self, ctx: click.Context, name: str) -> str:
        """Return a command's one-line help."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_UNLIMITED_WIDTH) if command is not None else ""


class LazyCommand(NamedTuple):
    """A command that is loaded when it is called. `target`: where it is,
    as `module:name` below `codeloop.cli`.

    "": in a further distribution, which names it in its entry points `codeloop.commands`.
    """

    target: str
    help: str

    def find(self, name: str) -> Callable[[], click.Command] | None:
        """Return the loader of the command; None: its distribution is not installed."""
        if self.target:
            return partial(load_object, f"cli.{self.target}")
        found = find_entry_points("codeloop.commands").get(name)
        return found.load if found is not None else None


class LazyGroup(CommandGroup):
    """A group that imports a command's module only when it is called;
    help and completion need none of them, and show those that are installed.

    `lazy_commands`: its commands by name.
    """

    def __init__(
        self, *args: Any, lazy_commands: Mapping[str, LazyCommand], **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self._lazy_commands = lazy_commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order, those that are not installed, too."""
        del ctx
        return list(self._lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command; None: it is unknown, or not installed."""
        del ctx
        lazy_command = self._lazy_commands.get(cmd_name)
        load = lazy_command.find(cmd_name) if lazy_command is not None else None
        try:
            return load() if load is not None else None
        except ImportError:
            # A distribution whose files are gone is still named by what it left.
            if lazy_command is not None and lazy_command.target:
                raise
            return None

    def get_short_help(self, ctx: click.Context, name: str) -> str:
        """Return a command's one-line help; "": it is not installed."""
        del ctx
        lazy_command = self._lazy_commands[name]
        return lazy_command.help if lazy_command.find(name) is not None else ""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin with what is typed, and the options."""
        completion_items = [
            CompletionItem(name, help=lazy_command.help)
            for name, lazy_command in self._lazy_commands.items()
            if name.startswith(incomplete) and lazy_command.find(name) is not None
        ]
        # The group's own method would load every command for its help text.
        return [*completion_items, *click.Command.shell_complete(self, ctx, incomplete)]


def describe_usage_error(error: click.ClickException) -> str:
    """Return a usage error as one line that names the command whose `--help` explains it."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    text = error.format_message()
    if isinstance(error, click.NoSuchOption) and context is not None:
        from codeloop.cli.suggestions import suggest_options

        text = f"Unknown option: {error.option_name}.{format_suggestion(suggest_options(context, error.option_name))}"
    full_stop = "" if text.endswith((".", "?", "!")) else "."
    hint = f" See: {context.command_path.strip()} --help" if context is not None else ""
    # The text quotes arguments, which may come from a script's data.
    return f"{escape_controls(text)}{full_stop}{hint}"
