"""The slash commands of every terminal, and the commands that an unknown name may stand for."""

import re
from collections.abc import Collection

from msgspec import Struct

from codeloop.kit.text.suggest import MAX_SUGGESTIONS, find_similar


class SlashCommand(Struct, frozen=True):
    """A command typed after `/`. `arguments`: their usage;
    `also`: its other names, such as those in other programs.
    """

    name: str
    title: str
    arguments: str = ""
    also: tuple[str, ...] = ()


def format_hints(placeholders: Collection[str]) -> str:
    """Return the usage of a command of the user's by the placeholders of its template: `$1`, `$2`,
    `$ARGUMENTS`.
    """
    return " ".join(
        "TEXT" if each == "$ARGUMENTS" else f"WORD{each.removeprefix('$')}" for each in placeholders
    )


SLASH_COMMANDS = (
    SlashCommand("new", "New session", "[PROMPT]", also=("clear",)),
    SlashCommand("sessions", "Switch session", also=("resume",)),
    SlashCommand("timeline", "Go to a prompt"),
    SlashCommand("rewind", "Go back to a prompt", also=("checkpoint",)),
    SlashCommand("goal", "Work until a goal is reached", "TEXT [--check COMMAND]..."),
    SlashCommand("worktree", "Work trees", "[VERB] [NAME [PROMPT]]", also=("worktrees",)),
    SlashCommand("compare", "Compare models", "-m MODEL -m MODEL [--check COMMAND] PROMPT"),
    SlashCommand("diff", "Show the changed files"),
    SlashCommand("context", "What fills the window"),
    SlashCommand("memory", "The project's memory"),
    SlashCommand("cost", "What it has cost"),
    SlashCommand("undo", "Undo the last turn"),
    SlashCommand("redo", "Redo what was undone"),
    SlashCommand("copy", "Copy the last answer"),
    SlashCommand("compact", "Compact the conversation"),
    SlashCommand("fork", "Fork the session"),
    SlashCommand("tree", "Show the forks"),
    SlashCommand("rename", "Rename the session", "[TITLE]"),
    SlashCommand("export", "Export the session"),
    SlashCommand("background", "Work on in the background, and leave", also=("bg", "detach")),
    SlashCommand("jobs", "What runs in the background", "[end ID]", also=("ps", "bashes", "tasks")),
    SlashCommand("stop-all", "Stop all sessions of this machine"),
    SlashCommand("plan", "Comment on the plan"),
    SlashCommand("takeover", "Stop the turn wherever it runs, to go on here", "[PROMPT]"),
    SlashCommand("next", "Next session that waits"),
    SlashCommand("models", "Switch model", "[NAME]", also=("model",)),
    SlashCommand("effort", "Thinking effort", "[NAME]"),
    SlashCommand("agents", "Switch agent", "[NAME]", also=("agent",)),
    SlashCommand("profile", "Switch permission profile", "[NAME]"),
    SlashCommand("permissions", "Permissions"),
    SlashCommand("connect", "Connect a provider"),
    SlashCommand("mcp", "MCP servers"),
    SlashCommand("themes", "Switch theme", "[NAME]", also=("theme",)),
    SlashCommand("sidebar", "Show or hide the sidebar"),
    SlashCommand("thinking", "Show or hide thinking"),
    SlashCommand("details", "Show or hide details of calls"),
    SlashCommand("picture", "Show the latest picture"),
    SlashCommand("status", "Show the status"),
    SlashCommand("find", "Find in the conversation", "[TEXT]"),
    SlashCommand("editor", "Change the prompt in $VISUAL or $EDITOR"),
    SlashCommand("stash", "Show the stashed prompts"),
    SlashCommand("help", "Help: keys and commands"),
    SlashCommand("settings", "Settings"),
    SlashCommand("tour", "Five keys to begin with"),
    SlashCommand("exit", "Quit", also=("quit", "q")),
)
COMMANDS_BY_NAME = {command.name: command for command in SLASH_COMMANDS}
COMMANDS_BY_ANY_NAME = {
    each: command for command in SLASH_COMMANDS for each in (command.name, *command.also)
}
COMMANDS_BY_FOREIGN_NAME: dict[str, tuple[str, ...]] = {
    "approvals": ("permissions",),
    "auth": ("connect",),
    "bug": ("help",),
    "commands": ("help",),
    "config": ("settings",),
    "credits": ("cost",),
    "history": ("timeline", "sessions"),
    "keybinds": ("help",),
    "keys": ("help",),
    "login": ("connect",),
    "logout": ("connect",),
    "mode": ("profile",),
    "providers": ("connect",),
    "reset": ("new",),
    "revert": ("undo", "rewind"),
    "search": ("find",),
    "session": ("sessions",),
    "stats": ("cost",),
    "summarize": ("compact",),
    "tokens": ("context", "cost"),
    "usage": ("cost", "context"),
    "variants": ("effort",),
    "vim": ("settings",),
    "window": ("context",),
}
"""Names that other programs or habits suggest, each with our commands of that meaning,
the likeliest first.
"""

# A name ends at a blank, so that a path such as `/etc/hosts` is not a command.
_COMMAND_LINE = r"/[A-Za-z][\w:.-]*(\s|$)|!\s*\S"


def is_command(line: str) -> bool:
    """Return whether a line is a `/command` or a `!command` for the shell,
    and not a path such as `/etc/hosts`.
    """
    return re.match(_COMMAND_LINE, line) is not None


def suggest_commands(
    name: str, known_names: Collection[str], also: Collection[str] = ()
) -> list[str]:
    """Return the commands that an unknown name may mean, best first: by meaning, then by spelling.

    `also`: other names of the known commands.
    """
    candidates = [
        each for each in COMMANDS_BY_FOREIGN_NAME.get(name.lower(), ()) if each in known_names
    ]
    return list(dict.fromkeys([*candidates, *find_similar(name, [*known_names, *also])]))[
        :MAX_SUGGESTIONS
    ]
