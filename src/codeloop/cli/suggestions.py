"""Suggestions for mistyped commands and options: by similar spelling, and by the names that other programs use."""

from collections.abc import Iterable, Iterator

import click

from codeloop.kit.suggest import MAX_SUGGESTIONS, find_similar

COMMAND_SYNONYMS: dict[str, tuple[str, ...]] = {
    "chat": (),
    "check": ("doctor",),
    "config": ("debug config",),
    "configure": ("debug config", "auth login"),
    "connect": ("auth login", "attach"),
    "context": ("session context",),
    "cost": ("stats", "session cost"),
    "exec": ("run",),
    "find": ("session search",),
    "health": ("doctor",),
    "history": ("session list",),
    "install": ("plugin add",),
    "keys": ("auth list",),
    "log": ("debug logs",),
    "logs": ("debug logs",),
    "ls": ("session list",),
    "list": ("session list",),
    "open": ("attach",),
    "providers": ("auth list", "models"),
    "ps": ("session list",),
    "resume": ("--continue", "session list"),
    "continue": ("--continue",),
    "rewind": ("undo",),
    "rm": ("session delete",),
    "sandbox": ("debug sandbox",),
    "server": ("serve",),
    "settings": ("debug config",),
    "setup": ("auth login", "doctor"),
    "show": ("session show",),
    "start": ("run", "serve"),
    "tui": (),
    "usage": ("stats",),
    "version": ("--version",),
}
"""By what people type, what is meant; nothing: the program without a command."""
SUBCOMMAND_SYNONYMS: dict[str, tuple[str, ...]] = {
    "add": ("add", "login", "new", "create", "install"),
    "create": ("create", "new", "add"),
    "delete": ("delete", "remove", "revoke", "logout"),
    "get": ("show", "list"),
    "info": ("show", "debug"),
    "login": ("login", "auth"),
    "logs": ("log", "debug"),
    "ls": ("list",),
    "new": ("new", "create", "add"),
    "remove": ("remove", "delete", "revoke", "logout"),
    "rm": ("remove", "delete", "revoke", "logout"),
    "test": ("debug",),
    "uninstall": ("remove",),
    "view": ("show",),
}
"""The same for the commands of a group: the first of these that it has is meant."""
COMMAND_WORDS = frozenset({"config", "configure", "doctor", "login", "logout", "logs", "ls", "rm"})
"""Words that begin no sentence: with one more word, they are commands too."""
OPTION_SYNONYMS: dict[str, str] = {
    "--allow-all": "--auto",
    "--cd": "--dir",
    "--cwd": "--dir",
    "--dangerously-skip-permissions": "--auto",
    "--full-auto": "--auto",
    "--headless": "codeloop run",
    "--image": "--file",
    "--max-turns": "--max-steps",
    "--mode": "--profile",
    "--output-format": "--format",
    "--permission-mode": "--profile",
    "--print": "codeloop run",
    "--reasoning-effort": "--variant",
    "--resume": "--session",
    "--verbose": "--log-level",
    "--yes": "--auto",
    "--yolo": "--auto",
    "-C": "--dir",
    "-p": "codeloop run",
    "-r": "--session",
    "-v": "--version",
    "-V": "--version",
}
"""By what other programs call it, an option of ours, or the command that does it."""


def suggest_commands(group: click.Group, context: click.Context, name: str) -> list[str]:
    """Return the whole lines that an unknown command of a group may mean, best first, at most three."""
    names, root = group.list_commands(context), context.find_root()
    own = [each for each in SUBCOMMAND_SYNONYMS.get(name.lower(), ()) if each in names][:1]
    if not own and name.lower() not in COMMAND_SYNONYMS:
        own = find_similar(name, names, parts=True)
    return [f"{context.command_path.strip()} {each}" for each in own] or find_similar_commands(root, name, parts=True)


def find_similar_commands(root: click.Context, name: str, *, parts: bool = False) -> list[str]:
    """Return the whole lines that a word may mean: `codeloop auth login`. `parts`: as `find_similar` has it."""
    group, program = root.command, root.command_path.strip() or "codeloop"
    if not isinstance(group, click.Group):
        return []
    if name.lower() in COMMAND_SYNONYMS:
        names = COMMAND_SYNONYMS[name.lower()]
        return [f"{program} {each}" for each in names] or [program]
    if close := find_similar(name, group.list_commands(root), parts=parts):
        return [f"{program} {each}" for each in close]
    lines = [*_list_command_lines(group, root)]
    leaves = find_similar(name, (line.rpartition(" ")[2] for line in lines), most_edits=1)
    return [f"{program} {line}" for leaf in leaves for line in lines if line.endswith(f" {leaf}")][:MAX_SUGGESTIONS]


def suggest_options(context: click.Context, name: str) -> list[str]:
    """Return suggestions for an unknown option: options of this command, else commands that have it."""
    own = [*_list_options(context.command, context)]
    if (equivalent := OPTION_SYNONYMS.get(name)) is not None and (equivalent in own or not equivalent.startswith("-")):
        return [equivalent]
    close = find_similar(name.lstrip("-"), (each.lstrip("-") for each in own if each.startswith("--")))
    if close or not name.startswith("--"):
        return [f"--{each}" for each in close]
    root = context.find_root()
    spelling, program = OPTION_SYNONYMS.get(name, name), root.command_path.strip() or "codeloop"
    group = root.command if isinstance(root.command, click.Group) else None
    if group is None:
        return []
    lines = [
        line
        for line in _list_command_lines(group, root)
        if spelling in _list_options(_find_command(group, root, line), root)
    ]
    return [f"{program} {line} {spelling}" for line in sorted(lines, key=lambda line: line != "run")[:MAX_SUGGESTIONS]]


def _list_command_lines(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yield every command of a group that is none itself, as it is typed after the program's name."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from (f"{name} {line}" for line in _list_command_lines(command, context))
        else:
            yield name


def _find_command(group: click.Group, context: click.Context, line: str) -> click.Command:
    command: click.Command = group
    for name in line.split(" "):
        subcommand = command.get_command(context, name) if isinstance(command, click.Group) else None
        command = subcommand or command
    return command


def _list_options(command: click.Command, context: click.Context) -> Iterable[str]:
    return [name for each in command.get_params(context) for name in (*each.opts, *each.secondary_opts)]
