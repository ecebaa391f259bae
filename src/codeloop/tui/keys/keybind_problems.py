"""Finds what is wrong in the user's `keybinds`: names of no command, keys that no keyboard has."""

from collections.abc import Iterable, Mapping

from codeloop.kit.suggest import find_similar, suggest_names
from codeloop.tui.commands import BY_ID
from codeloop.tui.keys.keymap import find_wrong_keys
from codeloop.tui.keys.prompt_bindings import BINDINGS

_FOREIGN = (
    "app_", "console_org_switch", "debug_view", "diff_", "docs_open", "messages_toggle_conceal",
    "model_favorite_toggle", "model_provider_list", "plugin_", "prompt_editor_context_clear", "prompt_skills",
    "scrollbar_toggle", "session_background", "session_copy", "session_move", "session_pin_toggle",
    "session_queued_prompts", "session_share", "session_toggle_", "session_unshare", "stash_delete",
    "terminal_title_toggle", "theme_mode_lock", "tips_toggle", "which_key_", "workspace_set",
)  # fmt: skip
"""The start of names that `keybinds` of the reference has and codeloop does not: they are no mistakes."""


def find_problems(custom: Mapping[str, object]) -> list[str]:
    """Return the problems of key settings: unknown names, and keys of the prompt's actions."""
    prompt = {row.id for row in BINDINGS} - {*BY_ID}
    names = {*BY_ID, *prompt, "leader"}
    problems = [
        f"keybinds.{name}: there is no key {key}." for name in prompt for key in find_wrong_keys(custom.get(name))
    ]
    unknown = [name for name in custom if name not in names and not name.startswith(_FOREIGN)]
    return [*problems, *(f"keybinds.{name}: there is no such command.{_suggest(name, names)}" for name in unknown)]


def _suggest(name: str, names: Iterable[str]) -> str:
    return suggest_names(find_similar(name, sorted(names)))
