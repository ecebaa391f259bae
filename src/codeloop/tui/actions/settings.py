"""`/settings`: shows all settings in a dialog, and changes those of the terminal UI,
which are in `tui.json`.
"""

from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import UsageProblem
from codeloop.tui.actions.show_dialog import make_context, show_dialog
from codeloop.tui.dialogs.settings import BOOLEAN_CHOICES, Setting, SettingsPicker
from codeloop.tui.settings.appearance import SIDEBAR_MIN_WIDTH
from codeloop.tui.settings.ui_settings import (
    UiSettings,
    read_settings,
    unset_setting,
    write_setting,
)
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.prompt.prompt_editor import set_vim_mode

UI_SETTINGS_GROUP = "Terminal UI (tui.json)"
"""The heading above these settings in the dialog."""
DESCRIPTIONS = {
    "theme": "the colours; /themes shows them while you choose",
    "mode": "dark or light colours; auto: as the terminal is",
    "leader_timeout": "milliseconds that the leader key waits for the next key",
    "mouse": "whether the mouse is used; takes effect at the next start",
    "scroll_speed": "rows that one turn of the mouse wheel scrolls",
    "diff_style": "changes in one column, or side by side; auto: by the width",
    "thinking": "whether the model's thinking is shown",
    "details": "whether the output of calls is shown",
    "sidebar": f"the sidebar; auto: from {SIDEBAR_MIN_WIDTH} columns on",
    "pictures": "whether pictures are shown in the conversation, where the terminal can",
    "vim": "the keys of vi in the prompt",
    "motion": "whether anything is animated",
    "bell": "ring when a long turn ends or a question waits while you look elsewhere",
    "title": "name the terminal's window after the session: * works, ? waits",
    "notifications": "show a desktop notification as well, where the terminal can",
}
"""What the dialog says about each setting."""


async def show_settings(ui: Ui, _words: str) -> None:
    """Show the settings, where they are set, and change them."""
    await show_dialog(
        ui,
        SettingsPicker(make_context(ui), partial(_list_settings, ui), partial(_change_setting, ui)),
    )
    await ui.choices.reload()
    ui.draw()


def _list_settings(ui: Ui) -> list[Setting]:
    """Read the files of settings; return the settings that the dialog can change."""
    sources = read_settings(ui.launch.settings_files)
    types = get_type_hints(UiSettings)
    themes = tuple(ui.appearance.list_themes())
    settings: list[Setting] = []
    for field in msgspec.structs.fields(UiSettings):
        # A table of many keys, which the dialog has no input for.
        if field.name == "keybinds":
            continue
        is_set = field.name in sources.origins
        settings.append(
            Setting(
                (field.name,),
                DESCRIPTIONS[field.name],
                choices=themes if field.name == "theme" else _list_choices(types[field.name]),
                group=UI_SETTINGS_GROUP,
                value=_format_value(getattr(sources.settings, field.name)) if is_set else "",
                origin=str(sources.origins[field.name]) if is_set else "",
                default=_format_value(field.default),
            )
        )
    return settings


async def _change_setting(ui: Ui, setting: Setting, value: Any) -> None:
    """Write a setting to the user's own file and apply it at once. `value`: None removes it.
    Raises CodeloopError.
    """
    file, key = ui.launch.own_settings, setting.keys[0]
    if file is None:
        raise UsageProblem("Settings can't be stored: this UI was started without a file for them.")
    setting_type = get_type_hints(UiSettings)[key]
    if value is None:
        unset_setting(file, key)
    else:
        try:
            # Choices, booleans and strings are values already;
            # other settings, such as numbers, were typed as JSON.
            is_json = setting_type not in {str, bool} and get_origin(setting_type) is not Literal
            typed_value = msgspec.json.decode(value) if is_json else value
            write_setting(file, key, msgspec.convert(typed_value, setting_type))
        except msgspec.MsgspecError as error:
            raise UsageProblem(f"{key} can't be {one_line(str(value), 40)}: {error}") from error
    sources = read_settings(ui.launch.settings_files)
    if (origin := sources.origins.get(key)) not in {None, file}:
        ui.notify(
            f"{origin} also sets {key}, and takes precedence.",
            severity="warning",
            timeout=15,
            markup=False,
        )
    ui.choices.settings = settings = sources.settings
    ui.appearance.apply_settings(settings)
    ui.scroll_sensitivity_y = settings.scroll_speed
    for tab in ui.tabs:
        set_vim_mode(tab.prompt.editor, is_wanted=settings.vim)
    ui.restyle()


def _list_choices(setting_type: Any) -> tuple[str, ...]:
    """Return the values that a setting of this type may have; empty: any."""
    if setting_type is bool:
        return BOOLEAN_CHOICES
    return tuple(get_args(setting_type)) if get_origin(setting_type) is Literal else ()


def _format_value(value: Any) -> str:
    """Return a value as it is displayed: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
