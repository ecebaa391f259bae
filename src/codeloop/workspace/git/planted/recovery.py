"""Looks through a project after a codeloop that was killed while its commands ran.

`RunningMark` says in a file that commands run, and since when. The launcher, which outlives
codeloop until it has ended the commands, calls `recover_killed` if it says so still; where the
launcher was killed, too, the next codeloop does.
"""

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from codeloop.kit.small_files import read_bounded, write_all
from codeloop.workspace.files.existing_paths import list_existing
from codeloop.workspace.git.planted.change_times import read_change_time
from codeloop.workspace.git.planted.quarantine import locate_quarantine, move_away
from codeloop.workspace.git.planted.repositories import ProjectRepositories
from codeloop.workspace.sandbox.paths.restricted_paths import TOP_NAMES

_MAX_BYTES = 16 * 1024 * 1024
_NOTE_SUFFIX = ".txt"
# Of the environment only what names configuration files of git.
_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
# A mark begins with the time since which commands run, in ns, with as many digits; 0: none runs.
_TIME_DIGITS = 20


def locate_marks(scratch: Path) -> Path:
    """Return the folder for the marks of a project; `scratch`: as in Workspace."""
    return scratch.with_name("running")


class RunningMark:
    """A file that says since when commands of this process run in a project,
    locked as long as this process lives.
    """

    def __init__(
        self,
        place: Path,
        repositories: ProjectRepositories,
        roots: Sequence[Path],
        environment: Mapping[str, str],
    ) -> None:
        """`place`: the folder for it; the others as of ProjectRepositories."""
        self._file = place / f"{os.getpid()}-{os.urandom(4).hex()}"
        self._fd = -1
        self._repositories = repositories
        self._names = {name: environment[name] for name in _VARIABLES if name in environment}
        self._roots = roots
        self._top_paths = [f"{root}/{name}" for root in roots for name in TOP_NAMES]
        self._paths: tuple[frozenset[Path], list[str]] | None = None
        repositories.on_running = self._set

    def _set(self, since: int) -> None:
        # Without it, which a full disk can be the reason for,
        # only what is left by a killed codeloop is not found.
        with suppress(OSError):
            if since:
                self._write_paths()
            if self._fd >= 0:
                os.pwrite(self._fd, str(since).zfill(_TIME_DIGITS).encode(), 0)

    def _write_paths(self) -> None:
        """Write what is the user's and what is not there, unless that is written."""
        if self._fd < 0:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        existing = list_existing(self._top_paths)
        absent = [path for path in self._top_paths if path not in existing]
        paths = self._repositories.user_repositories, absent
        if paths != self._paths:
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
            known = sorted(map(str, self._repositories.user_repositories))
            rows = json.dumps([list(map(str, self._roots)), self._names, known, sorted(absent)])
            write_all(self._fd, b"0" * _TIME_DIGITS + rows.encode())
            self._paths = paths

    def close(self) -> None:
        """Remove the file."""
        if self._fd >= 0:
            # Its folder may be gone or read-only meanwhile: then the next start passes it over.
            with suppress(OSError):
                self._file.unlink()
            os.close(self._fd)
            self._fd = -1


def recover_killed(place: Path) -> None:
    """Look through the projects of marks whose process has ended.
    What was found is kept for `take_recovered`.
    """
    with suppress(FileNotFoundError):
        for file in place.iterdir():
            if file.suffix == _NOTE_SUFFIX:
                continue
            with suppress(OSError), file.open("rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with suppress(ValueError):
                    if text := _look_through(
                        read_bounded(file, _MAX_BYTES), locate_quarantine(place)
                    ):
                        file.with_suffix(_NOTE_SUFFIX).write_text(text)
                file.unlink()


def take_recovered(place: Path) -> list[str]:
    """Do what `recover_killed` does, and return the texts on all that was found,
    for user and model.
    """
    if not place.is_dir():
        return []
    recover_killed(place)
    texts: list[str] = []
    for file in place.glob(f"*{_NOTE_SUFFIX}"):
        with suppress(OSError):
            texts.append(file.read_text())
            file.unlink()
    return texts


def _look_through(data: bytes, quarantine: Path) -> str:
    """Look through one project. Returns a text on what was moved away; "": nothing.
    Raises ValueError and OSError.
    """
    since = int(data[:_TIME_DIGITS] or b"0")
    if not since:
        return ""
    roots, environment, known, absent = json.loads(data[_TIME_DIGITS:])
    repositories = ProjectRepositories(tuple(map(Path, roots)), quarantine, environment)
    text = repositories.end_interrupted(since, set(map(Path, known)))
    repositories.close()
    moved = [
        path
        for path in map(Path, absent)
        if os.path.lexists(path) and read_change_time(path) >= since
    ]
    kept = [path for path in moved if move_away(path, quarantine) is not None]
    if kept:
        text += f" Moved to {quarantine}, since it decides what runs later: {', '.join(map(str, kept))}."
    return f"codeloop was killed while a command ran. {text.strip()}" if text else ""
