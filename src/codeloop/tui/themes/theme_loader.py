"""Loads themes by name: built-in ones, and files of the user or a project,
in the format of OpenCode's themes.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, cast

import msgspec

from codeloop.kit.small_files import read_bounded
from codeloop.schema.errors import CodeloopError
from codeloop.schema.installation import check_package_file
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.tui.themes.palette_256 import name_colour
from codeloop.tui.themes.theme import ColourTheme

ThemeMode = Literal["dark", "light"]

DEFAULT_THEME = "codeloop"
TERMINAL_THEME = "system"
"""The theme of the terminal's own sixteen colours."""
COLOURLESS_THEME = "monochrome"
_BUILT_IN_FOLDER = Path(__file__).with_name("data")
_HEX = r"#[0-9a-fA-F]{6}"
_SHORT_HEX = r"#[0-9a-fA-F]{3}"
_REQUIRED_KEYS = frozenset({"primary", "secondary", "accent", "text", "textMuted", "background"})
_FALLBACK_KEYS = {
    "error": "accent",
    "warning": "accent",
    "success": "secondary",
    "info": "secondary",
    "backgroundPanel": "background",
    "backgroundElement": "backgroundPanel",
    "border": "textMuted",
    "borderActive": "primary",
    "borderSubtle": "border",
    "diffAdded": "success",
    "diffRemoved": "error",
    "diffContext": "textMuted",
    "diffHunkHeader": "textMuted",
    "diffHighlightAdded": "diffAdded",
    "diffHighlightRemoved": "diffRemoved",
    "diffAddedBg": "background",
    "diffRemovedBg": "background",
    "diffContextBg": "background",
    "diffLineNumber": "textMuted",
    "diffAddedLineNumberBg": "diffAddedBg",
    "diffRemovedLineNumberBg": "diffRemovedBg",
    "markdownText": "text",
    "markdownHeading": "accent",
    "markdownLink": "primary",
    "markdownLinkText": "primary",
    "markdownCode": "success",
    "markdownBlockQuote": "textMuted",
    "markdownEmph": "text",
    "markdownStrong": "text",
    "markdownHorizontalRule": "textMuted",
    "markdownListItem": "primary",
    "markdownListEnumeration": "primary",
    "markdownImage": "markdownLink",
    "markdownImageText": "markdownLinkText",
    "markdownCodeBlock": "text",
    "syntaxComment": "textMuted",
    "syntaxKeyword": "accent",
    "syntaxFunction": "primary",
    "syntaxVariable": "text",
    "syntaxString": "success",
    "syntaxNumber": "accent",
    "syntaxType": "secondary",
    "syntaxOperator": "text",
    "syntaxPunctuation": "text",
}
"""The colour that is used instead of one that a file does not define."""


class ThemeError(CodeloopError):
    """A theme can't be used, or there is none of that name;
    the message names the file and the key, or all themes.
    """


def list_themes(folders: Iterable[Path] = ()) -> list[str]:
    """Return the names of all themes, sorted; `folders`: the folders with themes of
    the user and the project.
    """
    return sorted(
        {file.stem for folder in (_BUILT_IN_FOLDER, *folders) for file in folder.glob("*.json")}
    )


def load_theme(name: str, mode: ThemeMode, folders: Iterable[Path] = ()) -> ColourTheme:
    """Return a theme in its colours for a dark or a light terminal.
    Of several files of a name, the last one counts.

    Raises ThemeError when there is no theme of that name, or it is invalid.
    """
    paths = [
        file
        for folder in (_BUILT_IN_FOLDER, *folders)
        if (file := folder / f"{name}.json").is_file()
    ]
    # A name with a slash would read files outside of the folders.
    if not paths or Path(name).name != name:
        raise ThemeError(f"There is no theme {name}. There are: {', '.join(list_themes(folders))}.")
    return _read_theme(
        check_package_file(paths[-1]) if paths[-1].parent == _BUILT_IN_FOLDER else paths[-1], mode
    )


def _read_theme(file: Path, mode: ThemeMode) -> ColourTheme:
    try:
        content: object = msgspec.json.decode(read_bounded(file, CONFIG_BYTES.value))
    except (OSError, ValueError) as error:
        raise ThemeError(f"The theme {file} can't be read: {error}.") from error
    table = cast("dict[str, object]", content) if isinstance(content, dict) else {}
    defs, theme = table.get("defs", {}), table.get("theme")
    if not isinstance(theme, dict) or not isinstance(defs, dict):
        raise ThemeError(f"The theme {file} needs an object `theme` (and may have one `defs`).")
    resolver = _ColourResolver(
        file, mode, cast("dict[str, object]", theme), cast("dict[str, object]", defs)
    )
    return msgspec.convert(
        {key: resolver.resolve(key) for key in (*_REQUIRED_KEYS, *_FALLBACK_KEYS)}, ColourTheme
    )


class _ColourResolver:
    """Resolves the colours of a theme: references to other colours, dark and light variants,
    fallbacks.
    """

    def __init__(
        self, file: Path, mode: ThemeMode, theme: Mapping[str, object], defs: Mapping[str, object]
    ) -> None:
        self._file = file
        self._mode = mode
        self._theme = theme
        self._defs = defs

    def resolve(self, key: str) -> str:
        """Return the colour of a key, as `ColourTheme` has it. Raises ThemeError."""
        if key in self._theme:
            return self._resolve_value(self._theme[key], f"theme.{key}", ())
        if key in _REQUIRED_KEYS:
            raise ThemeError(
                f"The theme {self._file} has no `theme.{key}`; give it a colour such as #7aa2f7."
            )
        return self.resolve(_FALLBACK_KEYS[key])

    def _resolve_value(self, value: object, key: str, visited_names: tuple[str, ...]) -> str:
        """Return the colour of a value. `key`: where it is, for errors;
        `visited_names`: the names that led to it.
        """
        match value:
            # To Python, True is a number.
            case bool():
                pass
            case int() if 0 <= value < 256:
                return name_colour(value)
            case dict():
                modes = cast("dict[str, object]", value)
                if self._mode in modes:
                    return self._resolve_value(
                        modes[self._mode], f"{key}.{self._mode}", visited_names
                    )
                raise ThemeError(f"The theme {self._file} has no `{key}.{self._mode}`.")
            case "none" | "transparent":
                return ""
            case str() if re.fullmatch(_HEX, value):
                return value.lower()
            case str() if re.fullmatch(_SHORT_HEX, value):
                return "#" + "".join(2 * digit for digit in value[1:].lower())
            case str():
                return self._resolve_name(value, key, visited_names)
            case _:
                pass
        raise ThemeError(
            f"`{key}` of the theme {self._file} is not a colour: {value!r}. "
            'Write #rrggbb, "none", 0 to 255, a name of `defs`, or {"dark": ..., "light": ...}.'
        )

    def _resolve_name(self, name: str, key: str, visited_names: tuple[str, ...]) -> str:
        if name in visited_names:
            raise ThemeError(
                f"`{key}` of the theme {self._file} goes round in a circle: {' -> '.join((*visited_names, name))}."
            )
        for table, table_name in ((self._defs, "defs"), (self._theme, "theme")):
            if name in table:
                return self._resolve_value(
                    table[name], f"{table_name}.{name}", (*visited_names, name)
                )
        raise ThemeError(
            f"`{key}` of the theme {self._file} names {name!r}, which is neither in `defs` nor in `theme`."
        )
