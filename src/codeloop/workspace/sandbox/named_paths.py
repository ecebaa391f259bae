"""Finds the paths that the start of a helper program names: its words, its variables,
the scripts that it runs.

What is named is shown to the program (`program_profile.py`); of the rest, the user may be asked
whether it may be written (`places`).
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from msgspec import Struct

from codeloop.kit.small_files import read_start
from codeloop.workspace.sandbox.paths.linked_paths import (
    exists,
    find_kind,
    is_below_any,
    is_folder,
    leads_out_of_project,
    resolve_links,
)

_TOP_MARKERS = (".git", "package.json", "pyproject.toml", "pyvenv.cfg", "Cargo.toml", "go.mod")
"""Entries that mark the top folder of a program's code."""
_LIBRARY_NAMES = ("lib", "lib64", "libexec", "src", "site-packages")
"""Folders beside that of a program (`../lib`) which hold its code."""
_HOME_REFERENCE = r"(?<![\w./~-])~(?=/|$)|\$\{HOME\}|\$HOME\b|\$\{userHome\}|%USERPROFILE%"
# A path in a longer text, such as a shell line: `cd /x && exec node y.js`, `-v /x:/y`, `sqlite:////x`.
_PATH = r"""(?:(?<![\w.@%+~/-])|(?<=:/{3})|(?<=:/{2}))(/(?!/)[^\s"'`;|&()<>=$,:*?\[\]{}\\]+)"""
_SHORT_OPTION = r"-[A-Za-z](?=/)"
_QUOTED_PATH = r"""["'](/[^"'\n$`*?]+)["']"""
# A path from the folder of a script: `$(dirname "$0")/../x`, `path.join(__dirname, "../x")`.
_UPWARD_PATH = r"""(?<![\w.])(\.\./[\w./@+-]+)"""
_CODE_SUFFIXES = frozenset(
    (
        *(".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".py", ".pyz", ".rb"),
        *(".pl", ".php", ".lua", ".sh", ".bash", ".zsh", ".fish", ".jar", ".dll", ".exe", ".so"),
    )
)
_SCRIPT_BYTES = 8 * 1024
"""The start of a script that is searched for further paths."""
_SCRIPT_DEPTH = 3
"""The most scripts that name each other one after the other."""
_MAX_HOME_ENTRIES = 300
"""The most entries of the home that are shown when it is named as a whole."""
_MAX_BESIDE = 100
"""The most files of the same kind that are shown beside a script in the home or in `/tmp`."""
_MAX_PATHS = 200


class NamedPaths(Struct, frozen=True):
    """The absolute paths that a start names.

    `code`: folders and files of code, which exist; `places`: files and folders that the program
    may want to write, which may be absent.
    """

    code: tuple[Path, ...] = ()
    places: tuple[Path, ...] = ()

    @property
    def readable(self) -> tuple[Path, ...]:
        """All that exists."""
        return tuple(
            path for path in dict.fromkeys((*self.code, *self.places)) if os.path.lexists(path)
        )


def find_named_paths(
    words: Sequence[str],
    values: Iterable[str],
    home: Path,
    *,
    folder: Path | None = None,
    roots: Sequence[Path] = (),
) -> NamedPaths:
    """Return the paths that a command's words and its variables' values name. Reads the disk.

    `folder`: the one that the program starts in; `roots`: folders whose scripts are not looked at,
    since the model may change them.
    """
    finder = _Finder(home, roots)
    for word in words:
        for path in finder.list_paths(word, folder):
            finder.add_word(path)
    for value in values:
        for path in finder.list_paths(value, folder):
            finder.add_value(path)
    return NamedPaths(
        tuple(islice(finder.code, _MAX_PATHS)), tuple(islice(finder.places, _MAX_PATHS))
    )


def list_given_paths(values: Iterable[str], home: Path) -> list[Path]:
    """Return the absolute paths in the texts that a program was given. Reads the disk."""
    finder = _Finder(home, ())
    found = (path for value in values for path in finder.list_paths(value, None))
    return list(dict.fromkeys(islice(found, _MAX_PATHS)))


def expand_home(text: str, home: Path) -> str:
    """Return a text with `~/`, `$HOME` and the like replaced by the home."""
    return re.sub(_HOME_REFERENCE, lambda _: str(home), text)


def is_broad(path: Path, home: Path) -> bool:
    """Return whether a folder holds more than one program's files: the home, what holds it,
    or a folder at the top, such as `/tmp`.
    """
    return home.is_relative_to(path) or len(path.parts) <= 2


class _Finder:
    """Collects the paths of one start, in the order in which they are named."""

    def __init__(self, home: Path, roots: Sequence[Path]) -> None:
        self.code: dict[Path, None] = {}
        self.places: dict[Path, None] = {}
        self._home = home
        self._real_home = resolve_links(home)
        self._roots = [resolve_links(each) for each in roots]
        self._scripts: set[Path] = set()

    def list_paths(self, text: str, folder: Path | None) -> Iterator[Path]:
        """Yield the absolute paths in a word or value, each once, in normal form."""
        expanded = expand_home(text, self._home)
        found = dict[str, None]()
        # A whole word may have blanks and colons; so may what is behind an option's `=`.
        wholes = (expanded, expanded.partition("=")[2], re.sub(_SHORT_OPTION, "", expanded))
        for whole in wholes:
            if whole.startswith("/") and (
                os.path.lexists(whole) or not re.search(r"[\s:;|&]", whole)
            ):
                found[whole] = None
        if not any(map(os.path.lexists, found)):
            found |= dict.fromkeys(re.findall(_QUOTED_PATH, expanded))
            found |= dict.fromkeys(re.findall(_PATH, expanded))
        if folder is not None:
            found |= {str(folder / each): None for each in wholes if each.startswith("../")}
        yield from (Path(os.path.normpath(each)) for each in found if each.strip("/"))

    def add_word(self, path: Path) -> None:
        """Add a path that a command's word names: a script, a folder, or a place for data."""
        if not os.path.lexists(path):
            self._add_place(path)
            return
        if not self._is_code(path):
            self._add_place(path)
        self._add_code(path, _SCRIPT_DEPTH)

    def add_value(self, path: Path) -> None:
        """Add a path that a variable's value names; of data only that, not what is beside it."""
        if os.path.lexists(path) and self._is_code(path):
            self._add_code(path, _SCRIPT_DEPTH)
        else:
            self._add_place(path)

    def _is_code(self, path: Path) -> bool:
        if is_folder(path):
            return path.name in {"node_modules", "site-packages", "bin"} or _has_marker(path)
        # A disk of Windows calls every file executable.
        return path.suffix in _CODE_SUFFIXES or (not path.suffix and os.access(path, os.X_OK))

    def _add_place(self, path: Path) -> None:
        if not os.path.lexists(path) and not _can_be_made(path):
            return
        if not is_folder(path) or not is_broad(path, self._home):
            self.places[path] = None
        elif path == self._home:
            # A mount of the whole home would show its keys, too.
            with suppress(OSError), os.scandir(path) as entries:
                names = (each.path for each in entries if not each.name.startswith("."))
                self.places |= dict.fromkeys(map(Path, islice(names, _MAX_HOME_ENTRIES)))

    def _add_code(self, path: Path, depth: int) -> None:
        """Add a file or folder and the code around it, at both ends of a link.

        The model can make links in the project: what one leads to outside is not added.
        """
        if leads_out_of_project(path, self._roots):
            return
        for each in dict.fromkeys((path, resolve_links(path))):
            if os.path.lexists(each):
                self.code |= dict.fromkeys(
                    found
                    for found in self._list_around(each)
                    if not leads_out_of_project(found, self._roots)
                )
        script = resolve_links(path)
        if depth and find_kind(script) == stat.S_IFREG and script not in self._scripts:
            self._scripts.add(script)
            if not is_below_any(script, self._roots):
                self._read_script(script, depth - 1)

    def _read_script(self, script: Path, depth: int) -> None:
        """Add what the start of a script names, if it is one."""
        try:
            start = read_start(script, _SCRIPT_BYTES)
        except OSError:
            return
        if b"\0" in start or not (start.startswith(b"#!") or script.suffix in _CODE_SUFFIXES):
            return
        text = start.decode(errors="replace")
        upward = (script.parent / each for each in re.findall(_UPWARD_PATH, text))
        for path in (*self.list_paths(text, None), *upward):
            normal = Path(os.path.normpath(path))
            if os.path.lexists(normal) and not is_broad(normal, self._home):
                self._add_code(normal, depth)

    def _list_around(self, path: Path) -> Iterator[Path]:
        """Yield a path with what belongs to it: its package, its environment, its libraries."""
        folder = path if is_folder(path) else path.parent
        if is_broad(folder, self._real_home) or is_broad(folder, self._home):
            yield from self._list_beside(path, folder)
            return
        yield path
        if _is_interpreter(path):
            # Its environment is all that it needs; what it runs is named by other words.
            yield folder.parent
            return
        above = [
            each
            for each in (folder, *folder.parents)
            if not is_broad(each, self._home) and not is_broad(each, self._real_home)
        ]
        tops = [each for each in above if _has_marker(each)]
        # The outermost: a package of a workspace loads others of it.
        yield tops[-1] if tops else folder
        for each in above:
            if each.name in {"node_modules", "site-packages"}:
                yield each
            if is_folder(each / "node_modules"):
                yield each / "node_modules"
        yield from (
            path
            for name in _LIBRARY_NAMES
            if is_folder(path := folder.parent / name) and not is_broad(folder.parent, self._home)
        )

    def _list_beside(self, path: Path, folder: Path) -> Iterator[Path]:
        """Yield a file of a folder that is never shown whole, and the files of its kind there."""
        if path == folder:
            return
        yield path
        if path.suffix in _CODE_SUFFIXES:
            yield from islice(sorted(folder.glob(f"*{path.suffix}")), _MAX_BESIDE)
            yield from (
                each for name in ("node_modules", "package.json") if exists(each := folder / name)
            )


def _has_marker(folder: Path) -> bool:
    return any(exists(folder / name) for name in _TOP_MARKERS)


def _is_interpreter(path: Path) -> bool:
    return path.name.startswith("python") and exists(path.parent.parent / "pyvenv.cfg")


def _can_be_made(path: Path) -> bool:
    """Return whether an absent path could be a file of the user's: `/api/v1` is none."""
    above = next((each for each in path.parents if is_folder(each)), Path("/"))
    return len(above.parts) > 1 and os.access(above, os.W_OK)
