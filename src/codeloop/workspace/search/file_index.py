"""An index of a project's file and folder names, with fuzzy search."""

import asyncio
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.schema.limits import FILES_AGE, FILES_STALE
from codeloop.workspace.search.ripgrep import Ripgrep

Kind = Literal["file", "directory"]
_CLOSEST = 5_000  # how many names with scattered matches are ranked; further ones follow unranked


class IndexedName(Struct, frozen=True, gc=False):
    """A file or folder. `path`: relative to the project's directory, a folder's with a slash at its end.

    `lower`: the path in small letters; `name`: the last of it, without a slash.
    """

    path: str
    lower: str
    name: str
    is_folder: bool


class FileIndex:
    """The names below a directory. A list older than FILES_AGE is rebuilt; one older than FILES_STALE is waited for."""

    def __init__(self) -> None:
        self._names: list[IndexedName] = []
        self._made_at = -FILES_STALE.seconds
        self._renewal: asyncio.Task[None] | None = None

    async def names(self, directory: Path, ripgrep: Ripgrep, environment: Mapping[str, str]) -> list[IndexedName]:
        """Return all names that no ignore file excludes, hidden ones last, shallow ones first. Raises SearchFailed."""
        age = time.monotonic() - self._made_at
        if age > FILES_AGE.seconds and (self._renewal is None or self._renewal.done()):
            self._renewal = asyncio.create_task(self._renew(directory, ripgrep, environment))
            self._renewal.add_done_callback(_retrieve_error)
        if age > FILES_STALE.seconds and self._renewal is not None:
            await asyncio.shield(self._renewal)
        return self._names

    async def _renew(self, directory: Path, ripgrep: Ripgrep, environment: Mapping[str, str]) -> None:
        started = time.monotonic()
        file_list = await ripgrep.files(directory, None, environment)
        start = len(f"{directory}/".replace("//", "/"))
        self._names = await asyncio.to_thread(index_names, [path[start:] for path in file_list.paths])
        self._made_at = started


def _retrieve_error(renewal: asyncio.Task[None]) -> None:
    """Retrieve the error of a renewal that perhaps nobody awaits; the next caller tries again."""
    if not renewal.cancelled():
        renewal.exception()


def index_names(files: Iterable[str]) -> list[IndexedName]:
    """Return the names of files and of the folders they are in, as `FileIndex.names` does."""
    paths = set(files)
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    rows = [(_is_hidden(path), path.count("/"), path, False) for path in paths]
    rows += [(_is_hidden(path), path.count("/"), path, True) for path in folders]
    return [_make_name(path, is_folder=is_folder) for _, _, path, is_folder in sorted(rows)]


def _is_hidden(path: str) -> bool:
    return path.startswith(".") or "/." in path


def _make_name(path: str, *, is_folder: bool) -> IndexedName:
    lower = path.lower()
    slash = "/" if is_folder else ""
    return IndexedName(path + slash, lower + slash, lower.rpartition("/")[2], is_folder)


def find_names(names: Iterable[IndexedName], query: str, kind: Kind | None, limit: int) -> list[IndexedName]:
    """Return the names that contain the query's characters in order, in any case; the best first.

    Best is the whole name, then its stem, its start, a word of it, a part of it, a part of the path, and then what
    holds the characters in the fewest pieces; among equals what comes first in `names`. Spaces in a query are dropped.
    """
    if kind is not None:
        names = [name for name in names if name.is_folder == (kind == "directory")]
    query_letters = "".join(query.lower().removeprefix("./").split())
    best: list[IndexedName] = []
    for group in _rank_in_groups(list(names), query_letters) if query_letters else (names,):
        best += islice(group, limit - len(best))
        if len(best) >= limit:
            break
    return best


def _rank_in_groups(names: list[IndexedName], query_letters: str) -> Iterator[Iterable[IndexedName]]:
    """Return the names that fit, in groups: each better than the next, and made only when it is asked for."""
    holding = [name for name in names if query_letters in name.lower]
    matching_names = [name for name in holding if query_letters in name.name]
    starts = [name for name in matching_names if name.name.startswith(query_letters)]
    yield sorted(starts, key=lambda name: (name.name != query_letters, name.name.partition(".")[0] != query_letters))
    has_word = re.compile(rf"(?<![a-z0-9]){re.escape(query_letters)}").search
    within = [name for name in matching_names if not name.name.startswith(query_letters)]
    yield sorted(within, key=lambda name: has_word(name.name) is None)
    around = [name for name in holding if query_letters not in name.name]
    yield sorted(
        around, key=lambda name: (name.lower.rstrip("/") != query_letters.rstrip("/"), has_word(name.lower) is None)
    )
    # Possessive: a name that does not fit is left after one look at each of its characters.
    fits = re.compile("".join(f"[^{re.escape(char)}]*+{re.escape(char)}" for char in query_letters), re.DOTALL).match
    scattered = [name for name in names if fits(name.lower) and query_letters not in name.lower]
    in_name = [name for name in scattered if fits(name.name)]
    yield sorted(in_name[:_CLOSEST], key=lambda name: _count_pieces(name.name, query_letters))
    yield in_name[_CLOSEST:]
    in_path = [name for name in scattered if not fits(name.name)]
    yield sorted(in_path[:_CLOSEST], key=lambda name: _count_pieces(name.lower, query_letters))
    yield in_path[_CLOSEST:]


def _count_pieces(text: str, query_letters: str) -> tuple[int, int]:
    """Return in how many pieces a text holds the characters, looked for from its end, and how far they are apart."""
    pieces, at, end = 0, -1, 0
    for char in reversed(query_letters):
        index = text.rfind(char, 0, at if at >= 0 else None)
        if at < 0:
            end = index
        pieces += index != at - 1
        at = index
    return pieces, end - at
