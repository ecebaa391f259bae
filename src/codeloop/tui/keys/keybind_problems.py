"""Finds mistakes in the user's `keybinds`, to be shown at the start: unknown commands,
and keys that do not exist.
"""

from collections.abc import Iterable, Mapping

from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.tui.commands import COMMANDS_BY_ID
from codeloop.tui.keys.keymap import find_key_problems
from codeloop.tui.keys.prompt_bindings import PROMPT_BINDINGS

_OPENCODE_ONLY_PREFIXES = (
    "app_", "console_org_switch", "debug_view", "diff_", "docs_open", "messages_toggle_conceal",
    "model_favorite_toggle", "model_provider_list", "plugin_", "prompt_editor_context_clear", "prompt_skills",
    "scrollbar_toggle", "session_background", "session_copy", "session_move", "session_pin_toggle",
    "session_queued_prompts", "session_share", "session_toggle_", "session_unshare", "stash_delete",
    "terminal_title_toggle", "theme_mode_lock", "tips_toggle", "which_key_", "workspace_set",
)  # fmt: skip
"""Prefixes of names that OpenCode's `keybinds` have and codeloop's do not: a
shared file may set them.

Codeloop's own names are looked up before, so that one of them, such as `app_exit`,
may begin like this, too.
"""


def find_keybind_problems(custom: Mapping[str, object]) -> list[str]:
    """Return the problems of `keybinds`: unknown names, and wrong values for the prompt's actions.

    Wrong values for commands, and for the leader, are found by `Keymap`.
    """
    prompt_actions = [row.id for row in PROMPT_BINDINGS if row.id not in COMMANDS_BY_ID]
    names = {*COMMANDS_BY_ID, *prompt_actions, "leader"}
    problems = [
        problem
        for name in prompt_actions
        if name in custom
        for problem in find_key_problems(name, custom[name])
    ]
    unknown = [
        name
        for name in custom
        if name not in names and not name.startswith(_OPENCODE_ONLY_PREFIXES)
    ]
    return [
        *problems,
        *(f"keybinds.{name}: there is no such command.{_suggest(name, names)}" for name in unknown),
    ]


def _suggest(name: str, names: Iterable[str]) -> str:
    return format_suggestion(find_similar(name, sorted(names)))
