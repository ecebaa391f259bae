"""The slash commands of the terminal UI and of a conversation line by line: names, words, what `/help` says."""

from msgspec import Struct


class SlashCommand(Struct, frozen=True):
    """A command typed after `/`. `arguments`: the words after it; `also`: its other names, from other programs."""

    name: str
    title: str
    arguments: str = ""
    also: tuple[str, ...] = ()


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
BY_NAME = {command.name: command for command in SLASH_COMMANDS}
BY_ANY_NAME = {each: command for command in SLASH_COMMANDS for each in (command.name, *command.also)}
