"""The person's settings of the terminal UI: `tui.json`, in our folders and in the reference's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from codeloop.kit.jsonc import JsoncError, parse
from codeloop.tui.render.canvas import DiffView


class UiSettings(Struct, frozen=True, kw_only=True):
    """What can be set in `tui.json`; what the reference's has besides is left alone."""

    theme: str = "codeloop"
    mode: Literal["auto", "dark", "light"] = "auto"
    keybinds: dict[str, Any] = {}
    leader_timeout: int = 2000
    """Milliseconds that the leader key waits for another one."""
    mouse: bool = True
    scroll_speed: float = 3
    """Rows that one turn of the mouse wheel scrolls."""
    diff_style: Literal["auto", "unified", "split", "stacked"] = "auto"
    thinking: bool = True
    details: bool = True
    sidebar: Literal["auto", "show", "hide"] = "auto"
    vim: bool = False
    motion: bool = True
    """False: nothing moves by itself."""
    notify: bool = True
    """Whether a person who looks elsewhere is told that a turn is over or a question waits."""

    @property
    def diff_view(self) -> DiffView:
        """How diffs are drawn; `stacked` is the reference's word for unified."""
        return "unified" if self.diff_style == "stacked" else self.diff_style


class Sources(Struct, frozen=True):
    """The settings, the file that each was set in, and what could not be read."""

    settings: UiSettings
    origins: dict[str, Path] = {}
    problems: tuple[str, ...] = ()


def read_settings(files: Sequence[Path]) -> Sources:
    """Read files of settings; a later one takes precedence, key by key. A wrong value is named and left out."""
    values: dict[str, Any] = {}
    origins: dict[str, Path] = {}
    problems: list[str] = []
    for file in files:
        for key, value in _read(file, problems).items():
            if key not in UiSettings.__struct_fields__:
                continue
            try:
                msgspec.convert({key: value}, UiSettings)
            except msgspec.ValidationError as error:
                problems.append(f"{file}: {error} Left out.".replace(" - at `$", " at `"))
                continue
            both = key == "keybinds" and isinstance(values.get(key), dict)
            values[key] = {**values[key], **value} if both else value
            origins[key] = file
    return Sources(msgspec.convert(values, UiSettings), origins, tuple(problems))


def _read(file: Path, problems: list[str]) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{file} can't be read: {error}")
        return {}
    try:
        found: object = parse(text).value
    except JsoncError as error:
        problems.append(f"{file}:{error.position}: {error}")
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
