"""What a real git folder and its private one had in common when they were last made equal,
kept across processes.
"""

import json
from pathlib import Path

from codeloop.kit.small_files import read_bounded, write_atomically
from codeloop.workspace.git.private.open_folder import Stamp
from codeloop.workspace.git.private.refs import Refs

_MAX_BYTES = 256 * 1024 * 1024
Stamps = tuple[Stamp | None, Stamp | None]
"""The stamps of a file in the real folder and in the private one."""
_NOTHING: Stamps = (None, None)


class Base:
    """`files`: by path below the git folder; `refs`: the references of each git folder in it,
    by its path.

    `real`: the real folder; `roots`: the folders that commands write; `hidden`: the tracked files
    that they may not read.
    Commands can't reach the file it is stored in.
    """

    def __init__(
        self, file: Path, real: Path, roots: tuple[Path, ...], hidden: tuple[Path, ...]
    ) -> None:
        self.real = real
        self.roots = roots
        self.hidden = hidden
        self.files: dict[str, Stamps] = {}
        self.refs: dict[str, Refs] = {}
        self._file = file
        self._saved = ""

    def get(self, path: str) -> Stamps:
        """Return the stamps of a file."""
        return self.files.get(path, _NOTHING)

    def put(self, path: str, real: Stamp | None, private: Stamp | None) -> None:
        """Record the stamps of a file."""
        if real is None and private is None:
            self.files.pop(path, None)
        else:
            self.files[path] = (real, private)

    def forget(self, unit: str) -> None:
        """Forget everything of a git folder in the top one; "" for all."""
        self.files = {
            path: stamps for path, stamps in self.files.items() if not path.startswith(unit)
        }
        self.refs = {path: refs for path, refs in self.refs.items() if not path.startswith(unit)}

    def save(self) -> None:
        """Store it, if it has changed. Raises OSError."""
        # ASCII with escapes: a name may have bytes that are not UTF-8.
        folders = [list(map(str, paths)) for paths in (self.roots, self.hidden)]
        text = json.dumps([str(self.real), *folders, self.files, self.refs])
        if text != self._saved:
            write_atomically(self._file, text.encode())
            self._saved = text


def load_base(file: Path) -> Base | None:
    """Read a stored base; None: there is none, or it can't be read."""
    try:
        # An earlier version stored no hidden files.
        real, roots, *hidden, files, refs = json.loads(read_bounded(file, _MAX_BYTES))
        paths = (Path(path) for part in hidden for path in part)
        base = Base(file, Path(real), tuple(map(Path, roots)), tuple(paths))
        for path, (real_stamp, private_stamp) in files.items():
            base.put(path, _make_stamp(real_stamp), _make_stamp(private_stamp))
        base.refs = refs
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return base


def _make_stamp(numbers: list[int] | None) -> Stamp | None:
    """Return a stamp that was stored as a list."""
    if numbers is None:
        return None
    inode, size, modified, changed = numbers
    return inode, size, modified, changed
