"""The formatters that we know, as rows. Each reads the text on its stdin and writes it formatted on its stdout."""

from msgspec import Struct


class FormatterRow(Struct, frozen=True):
    """A formatter that we know.

    `command`: its program by name, and its arguments; `$FILE` is the path of the file, by which it finds its settings.
    `found`: files of a project that say that it is used there; `name:text`: a file of this name that has this text.
    """

    name: str
    extensions: tuple[str, ...]
    command: tuple[str, ...]
    found: tuple[str, ...]


ROWS = (
    FormatterRow(
        "ruff",
        (".py", ".pyi"),
        ("ruff", "format", "--quiet", "--force-exclude", "--stdin-filename", "$FILE", "-"),
        ("ruff.toml", ".ruff.toml", "pyproject.toml:[tool.ruff"),
    ),
)
"""In this order: of several that a project has for a file, the first one formats it."""
