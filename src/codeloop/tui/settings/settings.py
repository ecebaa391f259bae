"""The person's settings of the terminal UI: `tui.json`, in our folders and in the reference's."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import msgspec
from msgspec import Struct

from codeloop.kit.jsonc import JsoncError, is_object, parse
from codeloop.kit.small_files import make_private, write_atomically
from codeloop.schema.errors import CodeloopError
from codeloop.tui.render.canvas import DiffView

_COMMA = re.compile(r"\s*,[ \t]*\n?[ \t]*")
_LAST_COMMA = re.compile(r",\s*\Z")
_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,}\]]+')


class UiSettings(Struct, frozen=True, kw_only=True):
    """What can be set in `tui.json`; what the reference's has besides is left alone."""

    theme: str = "codeloop"
    mode: Literal["auto", "dark", "light"] = "auto"
    keybinds: dict[str, Any] = {}
    leader_timeout: int = 2000
    """Milliseconds that the leader key waits for another one."""
    mouse: bool = True
    scroll_speed: float = 2
    """Rows that one turn of the mouse wheel scrolls."""
    diff_style: Literal["auto", "unified", "split", "stacked"] = "auto"
    thinking: bool = True
    details: bool = True
    sidebar: Literal["auto", "show", "hide"] = "auto"
    vim: bool = False
    motion: bool = True
    """False: nothing moves by itself."""
    bell: bool = True
    """Whether the bell rings for a person who looks elsewhere: a long turn is over, or a question waits."""
    notifications: bool = True
    """Whether the desktop says so, too, where the terminal can have it do that."""

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


def write_setting(file: Path, key: str, value: str | float) -> None:
    """Set a value in a file of settings, which is made if there is none; comments in it stay.

    Raises CodeloopError when the file can't be read or written.
    """
    literal = msgspec.json.encode(value).decode()

    def changed(text: str, start: int | None, *, is_empty: bool) -> str:
        if start is not None:
            return text[:start] + _SCALAR.sub(lambda _: literal, text[start:], count=1)
        text = text.replace("{", f'{{\n  "{key}": {literal}{"" if is_empty else ","}', 1)
        return text.replace("}", "\n}", 1) if is_empty else text

    _rewrite(file, key, changed)


def unset_setting(file: Path, key: str) -> None:
    """Take a value out of a file of settings; comments in it stay. Raises CodeloopError as `write_setting` does."""

    def changed(text: str, start: int | None, *, is_empty: bool) -> str:
        if start is None or is_empty:
            return text
        before = text[: text.rindex(f'"{key}"', 0, start)]
        after = _SCALAR.sub("", text[start:], count=1)
        if (comma := _COMMA.match(after)) is not None:
            return before + after[comma.end() :]
        return _LAST_COMMA.sub("", before) + after

    if file.exists():
        _rewrite(file, key, changed)


class _Changed(Protocol):
    def __call__(self, text: str, start: int | None, *, is_empty: bool) -> str: ...


def _rewrite(file: Path, key: str, changed: _Changed) -> None:
    """Write a file of settings anew; `changed` gets its text and where the value of the key begins."""
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else "{}"
        document = parse(text)
        if not is_object(document.value):
            raise CodeloopError(f"{file} is not a JSON object. Correct it by hand.")
        start: int | None = None
        if key in document.value:
            spot = document.position((key,))
            start = sum(len(line) for line in text.splitlines(keepends=True)[: spot.line - 1]) + spot.column - 1
        text = changed(text, start, is_empty=not document.value)
        make_private(file.parent)
        write_atomically(file, text.rstrip("\n").encode() + b"\n")
    except JsoncError as error:
        raise CodeloopError(f"{file}:{error.position}: {error} Correct it by hand.") from error
    except OSError as error:
        raise CodeloopError(f"{file} can't be written: {error.strerror or error}.") from error


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
