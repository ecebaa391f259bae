"""Reads and writes `tui.json`, the user's settings of the terminal UI.
OpenCode's file of that name is read too.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct

from codeloop.kit.jsonc import Document, JsoncError, is_object, parse_jsonc
from codeloop.kit.small_files import create_private_folder, read_bounded, write_atomically
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.tui.render.canvas import DiffView

# Removing a value also removes the comma that separates it from the next one, but not the comments
# between them: of `"vim": true /* at last */, "bell": false`,
# `/* at last */ "bell": false` is left.
_COMMA_AFTER_VALUE = r"(?s)((?:\s+|//[^\r\n]*|/\*.*?\*/)*),[ \t]*\n?[ \t]*"
"""The comma after a value, perhaps after blanks and comments, which the group holds."""
# The last value of an object is removed with the comma before it.
_COMMA_BEFORE_END = r",\s*\Z"

COMMAND_ALIASES = {
    "help_show": "help",
    "diff_open": "session_changes",
    "prompt_submit": "input_submit",
    "prompt_stash": "stash_push",
    "prompt_stash_pop": "stash_pop",
    "prompt_stash_list": "stash_list",
}
"""OpenCode's names of commands that have another name in codeloop."""


class UiSettings(Struct, frozen=True, kw_only=True):
    """The keys of `tui.json`; other keys are ignored, since OpenCode has some more."""

    theme: str = "codeloop"
    mode: Literal["auto", "dark", "light"] = "auto"
    keybinds: dict[str, Any] = {}
    leader_timeout: Annotated[int, Meta(ge=100)] = 2000
    """Milliseconds that the leader waits for the next key."""
    mouse: bool = True
    scroll_speed: Annotated[float, Meta(gt=0)] = 2
    """Rows that one step of the mouse wheel scrolls."""
    diff_style: Literal["auto", "unified", "split", "stacked"] = "auto"
    thinking: bool = True
    details: bool = True
    sidebar: Literal["auto", "show", "hide"] = "auto"
    pictures: bool = True
    """Whether pictures are shown within the conversation, if the terminal can draw them."""
    vim: bool = False
    motion: bool = True
    """False: no animations."""
    bell: bool = True
    """Whether the bell rings in an unfocused terminal: a long turn is over, or a question waits."""
    title: bool = True
    """Whether the terminal's window title is the session's."""
    notifications: bool = True
    """Whether a desktop notification is shown too, if the terminal supports that."""

    @property
    def diff_view(self) -> DiffView:
        """How diffs are drawn; OpenCode writes `stacked` for `unified`."""
        return "unified" if self.diff_style == "stacked" else self.diff_style


class SettingsSources(Struct, frozen=True):
    """The merged settings, the file that set each of them,
    and the problems that were found in the files.
    """

    settings: UiSettings
    origins: dict[str, Path] = {}
    problems: tuple[str, ...] = ()


def read_settings(files: Sequence[Path]) -> SettingsSources:
    """Read files of settings; a later one takes precedence, key by key.
    A wrong value is skipped, and is a problem.
    """
    values: dict[str, Any] = {}
    origins: dict[str, Path] = {}
    problems: list[str] = []
    for file in files:
        for key, value in _read_values(file, problems).items():
            if key not in UiSettings.__struct_fields__:
                continue
            # Key by key, so that one wrong value does not make the other settings
            # of the file useless.
            try:
                msgspec.convert({key: value}, UiSettings)
            except msgspec.ValidationError as error:
                problems.append(f"{file}: {error}. It is left out.".replace(" - at `$.", " at `"))
                continue
            if key == "keybinds":
                keys_by_name = {
                    COMMAND_ALIASES.get(name, name): keys
                    for name, keys in cast("dict[str, object]", value).items()
                }
                values[key] = {**values.get(key, {}), **keys_by_name}
            else:
                values[key] = value
            origins[key] = file
    return SettingsSources(msgspec.convert(values, UiSettings), origins, tuple(problems))


def write_setting(file: Path, key: str, value: str | float) -> None:
    """Set a value in a file of settings, creating it if needed; comments in it stay.

    Raises CodeloopError when the file can't be read or written.
    """
    literal = msgspec.json.encode(value).decode()
    document = _parse_file(file)
    text, span = document.text, document.spans.get((key,))
    if span is not None:
        _write(file, text[: span.start] + literal + text[span.end :])
        return
    # A new value is the first one, right behind the opening brace of the object.
    inside = document.spans[()].start + 1
    separator = "," if document.value else "\n"
    _write(file, f'{text[:inside]}\n  "{key}": {literal}{separator}{text[inside:]}')


def unset_setting(file: Path, key: str) -> None:
    """Remove a value from a file of settings; comments in it stay.
    Raises CodeloopError as `write_setting` does.
    """
    document = _parse_file(file)
    if (span := document.spans.get((key,))) is None:
        return
    before, after = document.text[: span.key], document.text[span.end :]
    if (comma := re.match(_COMMA_AFTER_VALUE, after)) is not None:
        comments = comma[1] if comma[1].strip() else ""
        _write(file, before + comments + after[comma.end() :])
    else:
        _write(file, re.sub(_COMMA_BEFORE_END, "", before) + after)


def _parse_file(file: Path) -> Document:
    try:
        document = parse_jsonc(
            read_bounded(file, CONFIG_BYTES.value).decode() if file.exists() else "{}"
        )
    except JsoncError as error:
        raise CodeloopError(f"{file}:{error.position}: {error} Correct it by hand.") from error
    except UnicodeDecodeError as error:
        raise CodeloopError(f"{file} is not UTF-8 text. Correct it by hand.") from error
    except OSError as error:
        raise CodeloopError(f"{file} can't be read: {error.strerror or error}.") from error
    if not is_object(document.value):
        raise CodeloopError(f"{file} is not a JSON object. Correct it by hand.")
    return document


def _write(file: Path, text: str) -> None:
    try:
        create_private_folder(file.parent)
        write_atomically(file, text.rstrip("\n").encode() + b"\n")
    except OSError as error:
        raise CodeloopError(f"{file} can't be written: {error.strerror or error}.") from error


def _read_values(file: Path, problems: list[str]) -> dict[str, Any]:
    try:
        text = read_bounded(file, CONFIG_BYTES.value).decode()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{file} can't be read: {error}")
        return {}
    try:
        value: object = parse_jsonc(text).value
    except JsoncError as error:
        problems.append(f"{file}:{error.position}: {error}")
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
