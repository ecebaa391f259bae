"""The dialog of settings: shows their values and the files that set them, and changes them."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from codeloop.schema.api.config import CONFIG_ORIGINS, CONFIG_UPDATE, UpdateConfig
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PROFILES
from codeloop.schema.wire import JSON
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.settings.configuration import read_configuration

_MAX_ORIGIN = 34
"""Characters of the path of the file that sets a value; of a longer path, the end is shown."""
BOOLEAN_CHOICES = ("true", "false")


class Setting(Struct, frozen=True):
    """A setting that can be changed here. `keys`: its path in the configuration.

    `choices`: its possible values; empty: any text. `value`: a text as it is, anything else as
    JSON; "" if no file sets it, so that `default` holds. `origin`: the file that sets it; in the
    project's configuration, with the line.
    """

    keys: tuple[str, ...]
    description: str
    choices: tuple[str, ...] = ()
    group: str = ""
    value: str = ""
    origin: str = ""
    default: str = ""

    @property
    def name(self) -> str:
        """The keys joined by dots."""
        return ".".join(self.keys)


PROJECT_GROUP = "This project (codeloop.json)"
"""The group of the project's settings."""
PROJECT_SETTINGS = (
    Setting(("model",), "the model to begin with, as provider/model"),
    Setting(("small_model",), "the model for titles and the like"),
    Setting(("default_agent",), "the agent to begin with"),
    Setting(("profile",), "what is asked before something is done", PROFILES, default="auto"),
    Setting(
        ("sandbox", "mode"),
        "whether commands run in a sandbox",
        ("auto", "off", "required"),
        default="auto",
    ),
    Setting(
        ("sandbox", "network"),
        "what sandboxed commands reach",
        ("hosts", "on", "off"),
        default="hosts",
    ),
    Setting(("snapshot",), "whether changes are kept for undo", BOOLEAN_CHOICES, default="true"),
    Setting(
        ("compaction", "auto"),
        "whether a full context is summarised automatically",
        BOOLEAN_CHOICES,
        default="true",
    ),
    Setting(
        ("compaction", "prune"),
        "whether requests leave out old outputs of tools",
        BOOLEAN_CHOICES,
        default="true",
    ),
    Setting(("shell",), "the shell that runs commands"),
    Setting(("username",), "what you are called"),
    Setting(
        ("share",),
        "whether sessions may be shared",
        ("manual", "auto", "disabled"),
        default="manual",
    ),
)
ChangeSetting = Callable[[Setting, Any], Awaitable[None]]
"""Sets the value of a setting (None: removes it), or raises CodeloopError."""


class SettingsPicker(Picker[str]):
    """Shows and changes settings until it is closed: those of the project, and of the UI.

    `list_ui_settings` returns the settings of the UI, `change_ui_setting` changes one; without them
    only those of the project are shown.
    """

    def __init__(
        self,
        context: DialogContext,
        list_ui_settings: Callable[[], Sequence[Setting]] | None = None,
        change_ui_setting: ChangeSetting | None = None,
    ) -> None:
        self._dialog_context = context
        self._list_ui_settings = list_ui_settings
        self._change_ui_setting = change_ui_setting
        self._settings: dict[str, Setting] = {}
        """The settings by the values of their rows: the group and the name."""
        source = PickSource(
            title="Settings",
            load=self._load_rows,
            actions=(PickAction("ctrl+d", "reset to default", self._reset),),
            choose_label="change",
        )
        super().__init__(source, context.get_styles)

    async def _load_rows(self) -> Sequence[Pick[str]]:
        client = self._dialog_context.client
        values = await read_configuration(client)
        origins: dict[str, str] = {}
        # Servers of other programs with the same API may not have this operation.
        with suppress(OperationError):
            origins = await client.call(CONFIG_ORIGINS, NoArguments())
        settings = [*self._list_ui_settings()] if self._list_ui_settings is not None else []
        for each in PROJECT_SETTINGS:
            value, origin = _read_value(values, each.keys), origins.get(each.name, "")
            settings.append(
                msgspec.structs.replace(each, group=PROJECT_GROUP, value=value, origin=origin)
            )
        self._settings = {f"{each.group} {each.name}": each for each in settings}
        return [
            Pick(
                name,
                each.name,
                detail=each.value or (f"{each.default} (default)" if each.default else "not set"),
                hint=_shorten_path(each.origin),
                group=each.group,
                search_text=each.description,
                note=each.description,
            )
            for name, each in self._settings.items()
        ]

    def choose(self, value: str) -> None:
        """Ask for a new value of the setting."""
        self.perform(partial(self._ask_for_value, self._settings[value]))

    async def _ask_for_value(self, setting: Setting) -> None:
        if setting.choices:
            text = await self._dialog_context.ask(
                _create_value_picker(setting, self._dialog_context)
            )
        else:
            text = await self._dialog_context.ask(
                TextInput(setting.name, self.get_styles, setting.value, about=setting.description)
            )
        if text is not None and text.strip() != setting.value:
            await self._change_value(setting, _parse_value(setting, text.strip()))

    async def _reset(self, name: str | None) -> bool:
        if name is not None:
            await self._change_value(self._settings[name], None)
        # `_change_value` reloads the rows itself.
        return False

    async def _change_value(self, setting: Setting, value: object) -> None:
        try:
            if setting.group != PROJECT_GROUP and self._change_ui_setting is not None:
                await self._change_ui_setting(setting, value)
            else:
                await self._dialog_context.client.call(
                    CONFIG_UPDATE, UpdateConfig(config=_nest_value(setting.keys, value))
                )
        except CodeloopError as error:
            self.notify(str(error), severity="error", timeout=15, markup=False)
        self.reload()


def _create_value_picker(setting: Setting, context: DialogContext) -> Picker[str]:
    async def list_values() -> Sequence[Pick[str]]:
        current = setting.value or setting.default
        return [
            Pick(
                choice,
                choice,
                "default" if choice == setting.default else "",
                mark="●" if choice == current else "",
                note=setting.description,
            )
            for choice in setting.choices
        ]

    source = PickSource(
        title=setting.name, load=list_values, start=setting.value or setting.default or None
    )
    return Picker(source, context.get_styles)


def _shorten_path(path: str) -> str:
    """Shorten a path: relative to the home folder, and of a long one only the end."""
    home = f"{Path.home()}/"
    path = f"~/{path.removeprefix(home)}" if path.startswith(home) else path
    return path if len(path) <= _MAX_ORIGIN else f"…{path[1 - _MAX_ORIGIN :]}"


def _parse_value(setting: Setting, text: str) -> object:
    """Return a typed text as a value of the configuration;
    None, which removes the setting, if it is empty.
    """
    if not text:
        return None
    return text == BOOLEAN_CHOICES[0] if setting.choices == BOOLEAN_CHOICES else text


def _nest_value(keys: Sequence[str], value: object) -> JSON:
    """Return a value within objects, so that `keys` is its path."""
    first, *more_keys = keys
    return {first: _nest_value(more_keys, value) if more_keys else value}


def _read_value(values: JSON, keys: Sequence[str]) -> str:
    """Return the value at a path of keys, as text or JSON; "" if there is none."""
    value: Any = values
    for key in keys:
        value = cast("JSON", value).get(key) if isinstance(value, dict) else None
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
