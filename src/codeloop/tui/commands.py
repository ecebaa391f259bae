"""The commands of the terminal UI: what the palette lists, what keys and `/` run."""

from codeloop.tui.keys.keymap import UiCommand

SESSION, PROMPT, CHOOSE, VIEW, MOVE, APP = "Session", "Prompt", "Choose", "View", "Scroll", "Program"

COMMANDS: tuple[UiCommand, ...] = (
    UiCommand(
        "session_new", "New session", SESSION, "actions.tabs:open_new", "<leader>n", "new", "[PROMPT]", ("clear",)
    ),
    UiCommand(
        "session_list",
        "Switch session",
        SESSION,
        "actions.dialogs:choose_session",
        "<leader>l",
        "sessions",
        also=("resume",),
    ),
    UiCommand("session_timeline", "Go to a prompt", SESSION, "actions.dialogs:show_timeline", "<leader>g", "timeline"),
    UiCommand(
        "session_rewind",
        "Go back to a prompt",
        SESSION,
        "actions.dialogs:go_back",
        slash="rewind",
        also=("checkpoint",),
    ),
    UiCommand(
        "session_goal",
        "Work until a goal is reached",
        SESSION,
        "actions.send:send_goal",
        slash="goal",
        arguments="TEXT [--check COMMAND]...",
    ),
    UiCommand(
        "worktree",
        "Work trees",
        SESSION,
        "actions.work.worktrees:open_worktree",
        slash="worktree",
        arguments="[VERB] [NAME [PROMPT]]",
        also=("worktrees",),
    ),
    UiCommand(
        "compare",
        "Compare models",
        SESSION,
        "actions.work.worktrees:compare_models",
        slash="compare",
        arguments="-m MODEL -m MODEL [--check COMMAND] PROMPT",
    ),
    UiCommand("session_changes", "Show the changed files", SESSION, "actions.work.changes:show_changes", slash="diff"),
    UiCommand("session_context", "What fills the window", SESSION, "actions.reports:show_context", slash="context"),
    UiCommand("memory", "The project's memory", SESSION, "actions.reports:show_memory", slash="memory"),
    UiCommand("session_cost", "What it has cost", SESSION, "actions.reports:show_cost", slash="cost"),
    UiCommand("messages_undo", "Undo the last turn", SESSION, "actions.session:undo", "<leader>u", "undo"),
    UiCommand("messages_redo", "Redo what was undone", SESSION, "actions.session:redo", "<leader>r", "redo"),
    UiCommand("messages_copy", "Copy the last answer", SESSION, "actions.session:copy_answer", "<leader>y", "copy"),
    UiCommand(
        "session_compact", "Compact the conversation", SESSION, "actions.session:compact", "<leader>c", "compact"
    ),
    UiCommand("session_fork", "Fork the session", SESSION, "actions.session:fork", slash="fork"),
    UiCommand("session_tree", "Show the forks", SESSION, "actions.dialogs:choose_fork", slash="tree"),
    UiCommand(
        "session_rename",
        "Rename the session",
        SESSION,
        "actions.dialogs:rename_session",
        slash="rename",
        arguments="[TITLE]",
    ),
    UiCommand("session_export", "Export the session", SESSION, "actions.dialogs:export_to_file", "<leader>x", "export"),
    UiCommand("session_delete", "Delete the session", SESSION, "actions.dialogs:delete_session"),
    UiCommand("session_interrupt", "Stop the turn", SESSION, "actions.session:interrupt", "escape"),
    UiCommand(
        "session_stop_all", "Stop all sessions of this machine", SESSION, "actions.session:stop_all", slash="stop-all"
    ),
    UiCommand("plan_comment", "Comment on the plan", SESSION, "actions.work.plan:comment_on_plan", slash="plan"),
    UiCommand(
        "session_take_over",
        "Stop the turn wherever it runs, to go on here",
        SESSION,
        "actions.session:take_over",
        slash="takeover",
        arguments="[PROMPT]",
    ),
    UiCommand("session_child_first", "Show a subagent", SESSION, "actions.dialogs:choose_child", "<leader>down"),
    UiCommand("session_child_cycle", "Next subagent", SESSION, "actions.tabs:show_next_child", "ctrl+alt+down"),
    UiCommand(
        "session_child_cycle_reverse", "Previous subagent", SESSION, "actions.tabs:show_previous_child", "ctrl+alt+up"
    ),
    UiCommand("session_parent", "Back to the parent session", SESSION, "actions.tabs:show_parent", "<leader>up"),
    UiCommand("tab_next", "Next tab", SESSION, "actions.tabs:show_next", "ctrl+alt+right,<leader>right"),
    UiCommand("tab_previous", "Previous tab", SESSION, "actions.tabs:show_previous", "ctrl+alt+left,<leader>left"),
    UiCommand("session_next_waiting", "Next session that waits", SESSION, "actions.tabs:show_waiting", slash="next"),
    UiCommand("tab_close", "Close the tab", SESSION, "actions.tabs:close", "<leader>w"),
    UiCommand(
        "model_list",
        "Switch model",
        CHOOSE,
        "actions.dialogs:choose_model",
        "<leader>m",
        "models",
        "[NAME]",
        ("model",),
    ),
    UiCommand("variant_list", "Thinking effort", CHOOSE, "actions.dialogs:choose_variant", "none", "effort", "[NAME]"),
    UiCommand("variant_cycle", "Next thinking effort", CHOOSE, "actions.choose:switch_variant", "ctrl+t"),
    UiCommand("model_cycle_recent", "Model used before", CHOOSE, "actions.choose:switch_recent", "f2"),
    UiCommand(
        "model_cycle_recent_reverse", "Model used after", CHOOSE, "actions.choose:switch_recent_back", "shift+f2"
    ),
    UiCommand("model_cycle_favorite", "Next favourite model", CHOOSE, "actions.choose:switch_favourite"),
    UiCommand(
        "model_cycle_favorite_reverse", "Previous favourite model", CHOOSE, "actions.choose:switch_favourite_back"
    ),
    UiCommand(
        "agent_list",
        "Switch agent",
        CHOOSE,
        "actions.dialogs:choose_agent",
        "<leader>a",
        "agents",
        "[NAME]",
        ("agent",),
    ),
    UiCommand("agent_cycle", "Next agent", CHOOSE, "actions.choose:switch_agent", "tab"),
    UiCommand("agent_cycle_reverse", "Previous agent", CHOOSE, "actions.choose:switch_agent_back", "shift+tab"),
    UiCommand(
        "profile",
        "Switch permission profile",
        CHOOSE,
        "actions.choose:choose_profile",
        slash="profile",
        arguments="[NAME]",
    ),
    UiCommand("profile_cycle", "Next permission profile", CHOOSE, "actions.choose:switch_profile", "alt+m,<leader>p"),
    UiCommand("permission_list", "Permissions", CHOOSE, "actions.reports:show_permissions", slash="permissions"),
    UiCommand("provider_connect", "Connect a provider", CHOOSE, "actions.dialogs:connect_provider", slash="connect"),
    UiCommand("mcp_list", "MCP servers", CHOOSE, "actions.dialogs:show_servers", slash="mcp"),
    UiCommand(
        "theme_list", "Switch theme", VIEW, "actions.dialogs:choose_theme", "<leader>t", "themes", "[NAME]", ("theme",)
    ),
    UiCommand("theme_switch_mode", "Switch between dark and light", VIEW, "actions.view:switch_mode"),
    UiCommand(
        "sidebar_toggle", "Show or hide the sidebar", VIEW, "actions.sidebar:toggle_sidebar", "<leader>b", "sidebar"
    ),
    UiCommand("display_thinking", "Show or hide thinking", VIEW, "actions.view:toggle_thinking", slash="thinking"),
    UiCommand(
        "tool_details", "Show or hide details of calls", VIEW, "actions.view:toggle_details", "<leader>d", "details"
    ),
    UiCommand("call_toggle", "Open or close the lowest call", VIEW, "actions.view:toggle_lowest", "<leader>o"),
    UiCommand(
        "picture_view", "Show the latest picture", VIEW, "actions.pictures:show_picture_of_session", slash="picture"
    ),
    UiCommand("status_view", "Show the status", VIEW, "actions.view:show_status", "<leader>s", "status"),
    UiCommand(
        "session_find",
        "Find in the conversation",
        MOVE,
        "actions.find:find_in_conversation",
        "ctrl+f,<leader>f",
        "find",
        "[TEXT]",
    ),
    UiCommand("messages_page_up", "Page up", MOVE, "actions.view:scroll_page_up", "pageup"),
    UiCommand("messages_page_down", "Page down", MOVE, "actions.view:scroll_page_down", "pagedown"),
    UiCommand("messages_half_page_up", "Half a page up", MOVE, "actions.view:scroll_half_up", "ctrl+alt+u"),
    UiCommand("messages_half_page_down", "Half a page down", MOVE, "actions.view:scroll_half_down", "ctrl+alt+d"),
    UiCommand("messages_line_up", "Line up", MOVE, "actions.view:scroll_line_up", "ctrl+alt+y,ctrl+up"),
    UiCommand("messages_line_down", "Line down", MOVE, "actions.view:scroll_line_down", "ctrl+alt+e,ctrl+down"),
    UiCommand("messages_first", "To the first message", MOVE, "actions.view:show_first", "ctrl+g"),
    UiCommand("messages_last", "To the last message", MOVE, "actions.view:show_last", "ctrl+alt+g"),
    UiCommand("messages_previous", "To the prompt above", MOVE, "actions.view:show_previous_prompt", "alt+up"),
    UiCommand("messages_next", "To the prompt below", MOVE, "actions.view:show_next_prompt", "alt+down"),
    UiCommand("messages_last_user", "To your last prompt", MOVE, "actions.view:show_last_prompt"),
    UiCommand(
        "editor_open",
        "Change the prompt in $VISUAL or $EDITOR",
        PROMPT,
        "actions.stash:edit_prompt",
        "<leader>e",
        "editor",
    ),
    UiCommand("stash_push", "Stash the prompt", PROMPT, "actions.stash:push_stash", "alt+s"),
    UiCommand("stash_pop", "Restore the latest stashed prompt", PROMPT, "actions.stash:pop_stash", "alt+shift+s"),
    UiCommand("stash_list", "Show the stashed prompts", PROMPT, "actions.stash:choose_stashed", slash="stash"),
    UiCommand("command_list", "Show all commands", APP, "actions.dialogs:show_palette", "ctrl+p", early=True),
    UiCommand("help", "Help: keys and commands", APP, "actions.dialogs:show_help", "f1", "help"),
    UiCommand("settings", "Settings", APP, "actions.dialogs:show_settings", slash="settings"),
    UiCommand("tour", "Five keys to begin with", APP, "actions.first_run:show_tour", slash="tour"),
    UiCommand("terminal_suspend", "Suspend to the shell", APP, "actions.view:suspend", "ctrl+z", early=True),
    UiCommand("app_exit", "Quit", APP, "actions.tabs:leave", "ctrl+c,ctrl+d,<leader>q", "exit", also=("quit", "q")),
)
BY_ID = {command.id: command for command in COMMANDS}
BY_SLASH = {command.slash: command for command in COMMANDS if command.slash}
