"""`codeloop session`: the table of its commands, each loaded when it is called."""

import click

from codeloop.cli.group import LazyGroup

COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("commands.session.lists:list_", "List sessions, the newest change first."),
    "search": (
        "commands.session.lists:search",
        "Find sessions by their titles and what was said in them.",
    ),
    "show": ("commands.session.show:show", "Show a session as it ran."),
    "diff": ("commands.session.diff:diff", "Show what a session changed in files."),
    "rename": ("commands.session.changes:rename", "Change a session's title."),
    "fork": ("commands.session.changes:fork", "Copy a session."),
    "compact": ("commands.session.changes:compact", "Replace a session's conversation by a summary."),
    "pin": ("commands.session.changes:pin", "Pin a message: a summary keeps its text word for word."),
    "archive": ("commands.session.changes:archive", "Put sessions away; lists leave them out."),
    "unarchive": ("commands.session.changes:unarchive", "Bring archived sessions back."),
    "delete": ("commands.session.changes:delete", "Delete sessions; the files that they changed stay."),
}


@click.group(cls=LazyGroup, rows=COMMANDS)
def session() -> None:
    """List, show, search, fork, archive and delete the sessions of this project."""
