"""Names tools and plugins that lie where none is loaded from: in a folder
at the top of a project.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from codeloop.kit.small_files import read_start

_KINDS_BY_FOLDER = {"tool": "tool", "tools": "tool", "plugin": "plugin", "plugins": "plugin"}
_SETTINGS_PROGRAM = "opencode.config.ts"
_SUFFIXES = frozenset((".ts", ".mts", ".js", ".mjs"))
# Folders of these names hold other programs in most projects,
# so only what imports OpenCode's package counts.
_PACKAGE = b"@opencode-ai/"
# This is read at each start.
_MAX_FILES, _MAX_BYTES = 20, 4_096


def warn_misplaced_files(root: Path) -> Iterator[str]:
    """Yield a warning for each folder at a project's top with tools or
    plugins in OpenCode's form.
    """
    for folder, kind in _KINDS_BY_FOLDER.items():
        sources = sorted(file for file in _list_files(root / folder) if file.suffix in _SUFFIXES)
        names = [file.name for file in islice(sources, _MAX_FILES) if _imports_package(file)]
        if names:
            listed = ", ".join(name if name.isprintable() else ascii(name) for name in names)
            yield f"{folder}/ ({listed}) is not loaded: move it to .opencode/{kind}/, or name its files in `plugin`."
    if (root / _SETTINGS_PROGRAM).is_file():
        yield f"{_SETTINGS_PROGRAM} is not read: write its settings into opencode.json."


def _list_files(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if file.is_file()]
    except OSError:
        return []


def _imports_package(file: Path) -> bool:
    try:
        return _PACKAGE in read_start(file, _MAX_BYTES)
    except OSError:
        return False
