"""Checks the names in the user's `keybinds`."""

from collections.abc import Iterable, Mapping

from codeloop.kit.suggest import near, suggest_names
from codeloop.tui.commands import BY_ID
from codeloop.tui.keys.bindings import BINDINGS
from codeloop.tui.keys.keymap import wrong_keys

_NOTHING_HERE = (
    "app_", "console_org_switch", "debug_view", "diff_", "docs_open", "messages_toggle_conceal",
    "model_favorite_toggle", "model_provider_list", "plugin_", "prompt_editor_context_clear", "prompt_skills",
    "scrollbar_toggle", "session_background", "session_copy", "session_move", "session_pin_toggle",
    "session_queued_prompts", "session_share", "session_toggle_", "session_unshare", "stash_delete",
    "terminal_title_toggle", "theme_mode_lock", "tips_toggle", "which_key_", "workspace_set",
)  # fmt: skip
"""Prefixes of the reference's names that have no counterpart here."""


def find_problems(chosen: Mapping[str, object]) -> list[str]:
    """Return the problems of key settings: unknown names, and keys of the prompt's actions."""
    prompt = {row.id for row in BINDINGS} - {*BY_ID}
    known = {*BY_ID, *prompt, "leader"}
    problems = [f"keybinds.{name}: there is no key {key}." for name in prompt for key in wrong_keys(chosen.get(name))]
    unknown = [name for name in chosen if name not in known and not name.startswith(_NOTHING_HERE)]
    return [*problems, *(f"keybinds.{name}: there is no such command.{_suggest(name, known)}" for name in unknown)]


def _suggest(name: str, known: Iterable[str]) -> str:
    return suggest_names(near(name, sorted(known)))
