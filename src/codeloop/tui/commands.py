"""The commands of the terminal UI: what the palette lists, what keys and `/` run."""

from codeloop.tui.settings.keys import UiCommand

SESSION, PROMPT, CHOOSE, VIEW, MOVE, APP = "Session", "Prompt", "Choose", "View", "Scroll", "Program"

COMMANDS: tuple[UiCommand, ...] = (
    UiCommand("session_new", "New session", SESSION, "actions.tabs:new", "<leader>n", "new", "[PROMPT]", ("clear",)),
    UiCommand(
        "session_list", "Switch session", SESSION, "actions.dialogs:sessions", "<leader>l", "sessions", also=("resume",)
    ),
    UiCommand("session_timeline", "Go to a prompt", SESSION, "actions.dialogs:timeline", "<leader>g", "timeline"),
    UiCommand(
        "session_rewind",
        "Go back to a prompt",
        SESSION,
        "actions.dialogs:go_back",
        slash="rewind",
        also=("checkpoint",),
    ),
    UiCommand("session_changes", "Show the changed files", SESSION, "actions.changes:show", slash="diff"),
    UiCommand("session_context", "What fills the window", SESSION, "actions.reports:context", slash="context"),
    UiCommand("session_cost", "What it has cost", SESSION, "actions.reports:cost", slash="cost"),
    UiCommand("messages_undo", "Undo the last turn", SESSION, "actions.session:undo", "<leader>u", "undo"),
    UiCommand("messages_redo", "Redo what was undone", SESSION, "actions.session:redo", "<leader>r", "redo"),
    UiCommand("messages_copy", "Copy the last answer", SESSION, "actions.session:copy_answer", "<leader>y", "copy"),
    UiCommand(
        "session_compact", "Compact the conversation", SESSION, "actions.session:compact", "<leader>c", "compact"
    ),
    UiCommand("session_fork", "Fork the session", SESSION, "actions.session:fork", slash="fork"),
    UiCommand("session_tree", "Show the forks", SESSION, "actions.dialogs:forks", slash="tree"),
    UiCommand(
        "session_rename",
        "Rename the session",
        SESSION,
        "actions.dialogs:rename",
        slash="rename",
        arguments="[TITLE]",
    ),
    UiCommand("session_export", "Export the session", SESSION, "actions.dialogs:export", "<leader>x", "export"),
    UiCommand("session_delete", "Delete the session", SESSION, "actions.dialogs:delete"),
    UiCommand("session_interrupt", "Stop the turn", SESSION, "actions.session:interrupt", "escape"),
    UiCommand("session_child_first", "Show a subagent", SESSION, "actions.dialogs:children", "<leader>down"),
    UiCommand("session_child_cycle", "Next subagent", SESSION, "actions.tabs:next_child", "ctrl+alt+down"),
    UiCommand(
        "session_child_cycle_reverse", "Previous subagent", SESSION, "actions.tabs:previous_child", "ctrl+alt+up"
    ),
    UiCommand("session_parent", "Back to the parent session", SESSION, "actions.tabs:parent", "<leader>up"),
    UiCommand("tab_next", "Next tab", SESSION, "actions.tabs:following", "ctrl+alt+right,<leader>right"),
    UiCommand("tab_previous", "Previous tab", SESSION, "actions.tabs:preceding", "ctrl+alt+left,<leader>left"),
    UiCommand("tab_close", "Close the tab", SESSION, "actions.tabs:close", "<leader>w"),
    UiCommand(
        "model_list", "Switch model", CHOOSE, "actions.dialogs:models", "<leader>m", "models", "[NAME]", ("model",)
    ),
    UiCommand("variant_list", "Thinking effort", CHOOSE, "actions.dialogs:variants", "none", "effort", "[NAME]"),
    UiCommand("variant_cycle", "Next thinking effort", CHOOSE, "actions.choose:next_variant", "ctrl+t"),
    UiCommand("model_cycle_recent", "Model used before", CHOOSE, "actions.choose:next_recent", "f2"),
    UiCommand("model_cycle_recent_reverse", "Model used after", CHOOSE, "actions.choose:previous_recent", "shift+f2"),
    UiCommand("model_cycle_favorite", "Next favourite model", CHOOSE, "actions.choose:next_favourite"),
    UiCommand("model_cycle_favorite_reverse", "Previous favourite model", CHOOSE, "actions.choose:previous_favourite"),
    UiCommand(
        "agent_list", "Switch agent", CHOOSE, "actions.dialogs:agents", "<leader>a", "agents", "[NAME]", ("agent",)
    ),
    UiCommand("agent_cycle", "Next agent", CHOOSE, "actions.choose:next_agent", "tab"),
    UiCommand("agent_cycle_reverse", "Previous agent", CHOOSE, "actions.choose:previous_agent", "shift+tab"),
    UiCommand(
        "profile",
        "Switch permission profile",
        CHOOSE,
        "actions.choose:profile",
        slash="profile",
        arguments="[NAME]",
    ),
    UiCommand("profile_cycle", "Next permission profile", CHOOSE, "actions.choose:next_profile", "alt+m,<leader>p"),
    UiCommand("permission_list", "Permissions", CHOOSE, "actions.reports:permissions", slash="permissions"),
    UiCommand("provider_connect", "Connect a provider", CHOOSE, "actions.dialogs:providers", slash="connect"),
    UiCommand("mcp_list", "MCP servers", CHOOSE, "actions.dialogs:mcp", slash="mcp"),
    UiCommand(
        "theme_list", "Switch theme", VIEW, "actions.dialogs:themes", "<leader>t", "themes", "[NAME]", ("theme",)
    ),
    UiCommand("theme_switch_mode", "Switch between dark and light", VIEW, "actions.view:switch_mode"),
    UiCommand("sidebar_toggle", "Show or hide the sidebar", VIEW, "actions.beside:toggle", "<leader>b", "sidebar"),
    UiCommand("display_thinking", "Show or hide thinking", VIEW, "actions.view:thinking", slash="thinking"),
    UiCommand("tool_details", "Show or hide details of calls", VIEW, "actions.view:details", "<leader>d", "details"),
    UiCommand("call_toggle", "Open or close the lowest call", VIEW, "actions.view:toggle_lowest", "<leader>o"),
    UiCommand("picture_view", "Show the latest picture", VIEW, "actions.pictures:show", slash="picture"),
    UiCommand("status_view", "Show the status", VIEW, "actions.view:status", "<leader>s", "status"),
    UiCommand(
        "session_find", "Find in the conversation", MOVE, "actions.finding:find", "ctrl+f,<leader>f", "find", "[TEXT]"
    ),
    UiCommand("messages_page_up", "Page up", MOVE, "actions.view:page_up", "pageup"),
    UiCommand("messages_page_down", "Page down", MOVE, "actions.view:page_down", "pagedown"),
    UiCommand("messages_half_page_up", "Half a page up", MOVE, "actions.view:half_up", "ctrl+alt+u"),
    UiCommand("messages_half_page_down", "Half a page down", MOVE, "actions.view:half_down", "ctrl+alt+d"),
    UiCommand("messages_line_up", "Line up", MOVE, "actions.view:line_up", "ctrl+alt+y,ctrl+up"),
    UiCommand("messages_line_down", "Line down", MOVE, "actions.view:line_down", "ctrl+alt+e,ctrl+down"),
    UiCommand("messages_first", "To the first message", MOVE, "actions.view:first", "ctrl+g"),
    UiCommand("messages_last", "To the last message", MOVE, "actions.view:last", "ctrl+alt+g"),
    UiCommand("messages_previous", "To the prompt above", MOVE, "actions.view:previous_prompt", "alt+up"),
    UiCommand("messages_next", "To the prompt below", MOVE, "actions.view:next_prompt", "alt+down"),
    UiCommand("messages_last_user", "To your last prompt", MOVE, "actions.view:last_prompt"),
    UiCommand(
        "editor_open",
        "Change the prompt in $VISUAL or $EDITOR",
        PROMPT,
        "actions.writing:edit_outside",
        "<leader>e",
        "editor",
    ),
    UiCommand("stash_push", "Stash the prompt", PROMPT, "actions.writing:put_aside", "alt+s"),
    UiCommand("stash_pop", "Restore the latest stashed prompt", PROMPT, "actions.writing:take_back", "alt+shift+s"),
    UiCommand("stash_list", "Show the stashed prompts", PROMPT, "actions.writing:list_aside", slash="stash"),
    UiCommand("command_list", "Show all commands", APP, "actions.dialogs:show_palette", "ctrl+p", early=True),
    UiCommand("help", "Help: keys and commands", APP, "actions.dialogs:show_help", "f1", "help"),
    UiCommand("settings", "Settings", APP, "actions.dialogs:settings", slash="settings"),
    UiCommand("tour", "Five keys to begin with", APP, "actions.first_run:show_tour", slash="tour"),
    UiCommand("terminal_suspend", "Suspend to the shell", APP, "actions.view:suspend", "ctrl+z", early=True),
    UiCommand("app_exit", "Quit", APP, "actions.tabs:leave", "ctrl+c,ctrl+d,<leader>q", "exit", also=("quit", "q")),
)
BY_ID = {command.id: command for command in COMMANDS}
BY_SLASH = {command.slash: command for command in COMMANDS if command.slash}
