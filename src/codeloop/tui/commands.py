"""The table of the terminal UI's commands: the palette lists them,
keys and words after `/` run them.
"""

from codeloop.client.slash.commands import COMMANDS_BY_NAME
from codeloop.tui.keys.ui_command import UiCommand

# The headings under which the palette groups the commands. Those of SESSION, typed after `/`, wait
# until the project is open (`main_screen.py`).
SESSION = "Session"
PROMPT = "Prompt"
CHOICES = "Choose"
VIEW = "View"
SCROLLING = "Scroll"
PROGRAM = "Program"


def _make_command(
    name: str, command_id: str, group: str, run: str, keys: str = "none"
) -> UiCommand:
    """Return the row of a command that is also typed after `/`;
    `name`: its name there, also in line mode.
    """
    row = COMMANDS_BY_NAME[name]
    return UiCommand(
        command_id,
        row.title,
        group,
        run,
        keys,
        slash=row.name,
        arguments=row.arguments,
        aliases=row.also,
    )


COMMANDS: tuple[UiCommand, ...] = (
    _make_command("new", "session_new", SESSION, "actions.tabs:open_new_session", "<leader>n"),
    _make_command(
        "sessions", "session_list", SESSION, "actions.session:choose_session", "<leader>l"
    ),
    _make_command(
        "timeline", "session_timeline", SESSION, "actions.session:show_timeline", "<leader>g"
    ),
    _make_command("rewind", "session_rewind", SESSION, "actions.session:rewind_to_prompt"),
    _make_command("goal", "session_goal", SESSION, "actions.send:send_goal"),
    _make_command("worktree", "worktree", SESSION, "actions.work.worktrees:open_worktree"),
    _make_command("compare", "compare", SESSION, "actions.work.worktrees:compare_models"),
    _make_command("diff", "session_changes", SESSION, "actions.work.changes:show_changes"),
    _make_command("context", "session_context", SESSION, "actions.reports:show_context"),
    _make_command("memory", "memory", SESSION, "actions.reports:show_memory"),
    _make_command("cost", "session_cost", SESSION, "actions.reports:show_cost"),
    _make_command("undo", "messages_undo", SESSION, "actions.session:undo_turn", "<leader>u"),
    _make_command("redo", "messages_redo", SESSION, "actions.session:redo_turn", "<leader>r"),
    _make_command("copy", "messages_copy", SESSION, "actions.session:copy_answer", "<leader>y"),
    _make_command(
        "compact", "session_compact", SESSION, "actions.session:compact_session", "<leader>c"
    ),
    _make_command("fork", "session_fork", SESSION, "actions.session:fork_session"),
    _make_command("tree", "session_tree", SESSION, "actions.session:choose_fork"),
    _make_command("rename", "session_rename", SESSION, "actions.session:rename_session"),
    _make_command(
        "export", "session_export", SESSION, "actions.session:export_to_file", "<leader>x"
    ),
    UiCommand("session_delete", "Delete the session", SESSION, "actions.session:delete_session"),
    UiCommand(
        "session_interrupt", "Stop the turn", SESSION, "actions.session:interrupt_turn", "escape"
    ),
    _make_command("background", "session_background", SESSION, "actions.jobs:send_to_background"),
    _make_command("jobs", "jobs_list", SESSION, "actions.jobs:show_jobs", "<leader>j"),
    UiCommand(
        "queue_send",
        "Stop the turn and send what waits",
        SESSION,
        "actions.session:send_waiting_prompt",
    ),
    _make_command("stop-all", "session_stop_all", SESSION, "actions.session:stop_all"),
    _make_command("plan", "plan_comment", SESSION, "actions.work.plan:comment_on_plan"),
    _make_command("takeover", "session_take_over", SESSION, "actions.session:take_over"),
    UiCommand(
        "session_child_first",
        "Show a subagent",
        SESSION,
        "actions.session:choose_child",
        "<leader>down",
    ),
    UiCommand(
        "session_child_cycle",
        "Next subagent",
        SESSION,
        "actions.tabs:show_next_child",
        "ctrl+alt+down",
    ),
    UiCommand(
        "session_child_cycle_reverse",
        "Previous subagent",
        SESSION,
        "actions.tabs:show_previous_child",
        "ctrl+alt+up",
    ),
    UiCommand(
        "session_parent",
        "Back to the parent session",
        SESSION,
        "actions.tabs:show_parent_session",
        "<leader>up",
    ),
    UiCommand(
        "tab_next",
        "Next tab",
        SESSION,
        "actions.tabs:show_next_tab",
        "ctrl+alt+right,<leader>right",
    ),
    UiCommand(
        "tab_previous",
        "Previous tab",
        SESSION,
        "actions.tabs:show_previous_tab",
        "ctrl+alt+left,<leader>left",
    ),
    _make_command("next", "session_next_waiting", SESSION, "actions.tabs:show_waiting_session"),
    UiCommand("tab_close", "Close the tab", SESSION, "actions.tabs:close_tab", "<leader>w"),
    _make_command("models", "model_list", CHOICES, "actions.choices:choose_model", "<leader>m"),
    _make_command("effort", "variant_list", CHOICES, "actions.choices:choose_variant"),
    UiCommand(
        "variant_cycle", "Next thinking effort", CHOICES, "actions.choices:switch_variant", "ctrl+t"
    ),
    UiCommand(
        "model_cycle_recent", "Model used before", CHOICES, "actions.choices:switch_recent", "f2"
    ),
    UiCommand(
        "model_cycle_recent_reverse",
        "Model used after",
        CHOICES,
        "actions.choices:switch_recent_back",
        "shift+f2",
    ),
    UiCommand(
        "model_cycle_favorite", "Next favourite model", CHOICES, "actions.choices:switch_favourite"
    ),
    UiCommand(
        "model_cycle_favorite_reverse",
        "Previous favourite model",
        CHOICES,
        "actions.choices:switch_favourite_back",
    ),
    _make_command("agents", "agent_list", CHOICES, "actions.choices:choose_agent", "<leader>a"),
    UiCommand("agent_cycle", "Next agent", CHOICES, "actions.choices:switch_agent", "tab"),
    UiCommand(
        "agent_cycle_reverse",
        "Previous agent",
        CHOICES,
        "actions.choices:switch_agent_back",
        "shift+tab",
    ),
    _make_command("profile", "profile", CHOICES, "actions.choices:choose_profile"),
    UiCommand(
        "profile_cycle",
        "Next permission profile",
        CHOICES,
        "actions.choices:switch_profile",
        "alt+m,<leader>p",
    ),
    _make_command("permissions", "permission_list", CHOICES, "actions.reports:show_permissions"),
    _make_command("connect", "provider_connect", CHOICES, "actions.connections:connect_provider"),
    _make_command("mcp", "mcp_list", CHOICES, "actions.connections:show_servers"),
    _make_command("themes", "theme_list", VIEW, "actions.appearance:choose_theme", "<leader>t"),
    UiCommand(
        "theme_switch_mode",
        "Switch between dark and light",
        VIEW,
        "actions.appearance:switch_colour_mode",
    ),
    _make_command("sidebar", "sidebar_toggle", VIEW, "actions.sidebar:toggle_sidebar", "<leader>b"),
    _make_command("thinking", "display_thinking", VIEW, "actions.appearance:toggle_thinking"),
    _make_command(
        "details", "tool_details", VIEW, "actions.appearance:toggle_details", "<leader>d"
    ),
    UiCommand(
        "call_toggle",
        "Open or close the lowest call",
        VIEW,
        "actions.appearance:toggle_lowest_call",
        "<leader>o",
    ),
    UiCommand(
        "calls_toggle",
        "Open or close everything",
        VIEW,
        "actions.appearance:toggle_everything",
        "ctrl+o",
    ),
    _make_command(
        "picture", "picture_view", VIEW, "actions.conversation.pictures:show_picture_of_session"
    ),
    _make_command("status", "status_view", VIEW, "actions.reports:show_status", "<leader>s"),
    _make_command(
        "find",
        "session_find",
        SCROLLING,
        "actions.conversation.find:find_in_conversation",
        "ctrl+f,<leader>f",
    ),
    UiCommand(
        "messages_page_up", "Page up", SCROLLING, "actions.scrolling:scroll_page_up", "pageup"
    ),
    UiCommand(
        "messages_page_down",
        "Page down",
        SCROLLING,
        "actions.scrolling:scroll_page_down",
        "pagedown",
    ),
    UiCommand(
        "messages_half_page_up",
        "Half a page up",
        SCROLLING,
        "actions.scrolling:scroll_half_up",
        "ctrl+alt+u",
    ),
    UiCommand(
        "messages_half_page_down",
        "Half a page down",
        SCROLLING,
        "actions.scrolling:scroll_half_down",
        "ctrl+alt+d",
    ),
    UiCommand(
        "messages_line_up",
        "Line up",
        SCROLLING,
        "actions.scrolling:scroll_line_up",
        "ctrl+alt+y,ctrl+up",
    ),
    UiCommand(
        "messages_line_down",
        "Line down",
        SCROLLING,
        "actions.scrolling:scroll_line_down",
        "ctrl+alt+e,ctrl+down",
    ),
    UiCommand(
        "messages_first",
        "To the first message",
        SCROLLING,
        "actions.scrolling:show_first_message",
        "ctrl+g",
    ),
    UiCommand(
        "messages_last",
        "To the last message",
        SCROLLING,
        "actions.scrolling:show_last_message",
        "ctrl+alt+g",
    ),
    UiCommand(
        "messages_previous",
        "To the prompt above",
        SCROLLING,
        "actions.scrolling:show_previous_prompt",
        "alt+up",
    ),
    UiCommand(
        "messages_next",
        "To the prompt below",
        SCROLLING,
        "actions.scrolling:show_next_prompt",
        "alt+down",
    ),
    UiCommand(
        "messages_last_user", "To your last prompt", SCROLLING, "actions.scrolling:show_last_prompt"
    ),
    _make_command("editor", "editor_open", PROMPT, "actions.stash:edit_prompt", "<leader>e"),
    UiCommand("stash_push", "Stash the prompt", PROMPT, "actions.stash:push_stash", "alt+s"),
    UiCommand(
        "stash_pop",
        "Restore the latest stashed prompt",
        PROMPT,
        "actions.stash:pop_stash",
        "alt+shift+s",
    ),
    _make_command("stash", "stash_list", PROMPT, "actions.stash:choose_from_stash"),
    UiCommand(
        "command_list",
        "Show all commands",
        PROGRAM,
        "actions.program:show_palette",
        "ctrl+p",
        precedes_widget=True,
    ),
    _make_command("help", "help", PROGRAM, "actions.program:show_help", "f1"),
    _make_command("settings", "settings", PROGRAM, "actions.settings:show_settings"),
    _make_command("tour", "tour", PROGRAM, "actions.project.open_project:show_tour"),
    UiCommand(
        "terminal_suspend",
        "Suspend to the shell",
        PROGRAM,
        "actions.program:suspend_program",
        "ctrl+z",
        precedes_widget=True,
    ),
    _make_command(
        "exit", "app_exit", PROGRAM, "actions.program:quit_program", "ctrl+c,ctrl+d,<leader>q"
    ),
)
# Keys and messages name a command by its id.
COMMANDS_BY_ID = {command.id: command for command in COMMANDS}
COMMANDS_BY_SLASH = {command.slash: command for command in COMMANDS if command.slash}
