"""Suggestions for mistyped commands and options: by similar spelling,
and by the names that other programs use.
"""

from collections.abc import Iterable, Iterator

import click

from codeloop.kit.text.suggest import MAX_SUGGESTIONS, find_similar

# Words that users type, often as commands of other programs,
# with the commands and options that do that here.
# An empty tuple stands for `codeloop` without a command.
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
# The same for the commands of a group: the first of the tuple that the group has is suggested.
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
# Words that begin no sentence: followed by one more word, they are taken for a mistyped command,
# not for a prompt.
COMMAND_WORDS = frozenset({"config", "configure", "doctor", "login", "logout", "logs", "ls", "rm"})
# Options of other programs, with the option or the command that does the same here.
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


def suggest_commands(group: click.Group, context: click.Context, name: str) -> list[str]:
    """Return the command lines that an unknown command of a group may stand for, best first,
    at most three.
    """
    names, root = group.list_commands(context), context.find_root()
    close = [synonym for synonym in SUBCOMMAND_SYNONYMS.get(name.lower(), ()) if synonym in names][
        :1
    ]
    if not close and name.lower() not in COMMAND_SYNONYMS:
        close = find_similar(name, names, parts=True)
    return [
        f"{context.command_path.strip()} {command}" for command in close
    ] or find_similar_commands(root, name, parts=True)


def find_similar_commands(root: click.Context, name: str, *, parts: bool = False) -> list[str]:
    """Return the command lines that a word may stand for, such as `codeloop auth login`.

    `parts`: also match the names of commands that contain the word, as in `find_similar`.
    """
    group, program = root.command, root.command_path.strip() or "codeloop"
    if not isinstance(group, click.Group):
        return []
    if name.lower() in COMMAND_SYNONYMS:
        names = COMMAND_SYNONYMS[name.lower()]
        return [f"{program} {synonym}" for synonym in names] or [program]
    if close := find_similar(name, group.list_commands(root), parts=parts):
        return [f"{program} {command}" for command in close]
    # Commands of groups, by their last word: `logn` may stand for `auth login`.
    lines = [*_list_command_lines(group, root)]
    last_words = find_similar(name, (line.rpartition(" ")[2] for line in lines), most_edits=1)
    return [
        f"{program} {line}" for word in last_words for line in lines if line.endswith(f" {word}")
    ][:MAX_SUGGESTIONS]


def suggest_options(context: click.Context, name: str) -> list[str]:
    """Return suggestions for an unknown option: options of this command,
    else commands that have it.
    """
    options = [*_list_options(context.command, context)]
    equivalent = OPTION_SYNONYMS.get(name)
    if equivalent is not None and (equivalent in options or not equivalent.startswith("-")):
        return [equivalent]
    close = find_similar(
        name.lstrip("-"), (option.lstrip("-") for option in options if option.startswith("--"))
    )
    if close or not name.startswith("--"):
        return [f"--{option}" for option in close]
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
    # `run` has most of the options, so it is the likeliest command.
    return [
        f"{program} {line} {spelling}"
        for line in sorted(lines, key=lambda line: line != "run")[:MAX_SUGGESTIONS]
    ]


def _list_command_lines(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yield every command below a group that is not a group itself,
    as it is typed after the name of the program.
    """
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from (f"{name} {line}" for line in _list_command_lines(command, context))
        elif command is not None:
            yield name


def _find_command(group: click.Group, context: click.Context, line: str) -> click.Command:
    """Return the command that is called by these words below a group."""
    command: click.Command = group
    for name in line.split(" "):
        subcommand = (
            command.get_command(context, name) if isinstance(command, click.Group) else None
        )
        command = subcommand or command
    return command


def _list_options(command: click.Command, context: click.Context) -> Iterable[str]:
    # `secondary_opts` are the negations, such as `--no-keyring`.
    return [
        name
        for option in command.get_params(context)
        for name in (*option.opts, *option.secondary_opts)
    ]
