"""Keeps an index of a project's file and folder names,
and searches it with gaps between the characters.
"""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.schema.limits import FILES_AGE, FILES_STALE
from codeloop.workspace.search.ripgrep import Ripgrep

NameKind = Literal["file", "directory"]
# The most names with scattered characters that are ranked; others follow in the order of the index.
_MAX_RANKED = 5_000
_REBUILD_DISTANCE = 10


class IndexedName(Struct, frozen=True, gc=False):
    """A file or folder. `path`: relative to the project's directory,
    a folder's with a slash at its end.

    `lower`: the path in lower case; `name`: the last part of that, without a slash.
    """

    path: str
    lower: str
    name: str
    is_folder: bool


class FileIndex:
    """The names below a directory, rebuilt when they are older than FILES_AGE;
    beyond FILES_STALE, that is awaited.

    Where a rebuild takes long, the next one waits for ten times as long, up to FILES_STALE: whoever
    types with pauses does not have hundreds of thousands of files listed at each of them.
    """

    def __init__(self) -> None:
        self._names: list[IndexedName] = []
        self._digest = 0
        """Of the paths of the files that `_names` was made of."""
        self._made_at = -FILES_STALE.seconds
        self._seconds = 0.0
        """How long the last rebuild took."""
        self._rebuild_task: asyncio.Task[None] | None = None

    async def list_names(
        self, directory: Path, ripgrep: Ripgrep, environment: Mapping[str, str]
    ) -> list[IndexedName]:
        """Return all names that no ignore file excludes, hidden ones last, shallow ones first.
        Raises SearchFailed.
        """
        age = time.monotonic() - self._made_at
        max_age = max(
            FILES_AGE.seconds, min(_REBUILD_DISTANCE * self._seconds, FILES_STALE.seconds)
        )
        if age > max_age and (self._rebuild_task is None or self._rebuild_task.done()):
            self._rebuild_task = asyncio.create_task(self._rebuild(directory, ripgrep, environment))
            self._rebuild_task.add_done_callback(_retrieve_error)
        if age > FILES_STALE.seconds and self._rebuild_task is not None:
            await asyncio.shield(self._rebuild_task)
        return self._names

    async def _rebuild(
        self, directory: Path, ripgrep: Ripgrep, environment: Mapping[str, str]
    ) -> None:
        started = time.monotonic()
        file_list = await ripgrep.list_files(directory, None, environment)
        # The paths themselves would take as much memory as the names.
        digest = await asyncio.to_thread(lambda: hash(frozenset(file_list.paths)))
        if digest != self._digest:
            start = len(f"{directory}/".replace("//", "/"))
            self._names = await asyncio.to_thread(
                index_names, [path[start:] for path in file_list.paths]
            )
            self._digest = digest
        self._made_at, self._seconds = started, time.monotonic() - started


def _retrieve_error(rebuild_task: asyncio.Task[None]) -> None:
    """Retrieve the error of a rebuild, since asyncio reports one that nobody retrieves;
    the next caller tries again.
    """
    if not rebuild_task.cancelled():
        rebuild_task.exception()


def index_names(files: Iterable[str]) -> list[IndexedName]:
    """Return the names of files and of the folders they are in: hidden ones last,
    shallow ones first.
    """
    paths = set(files)
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    # Texts sort in a fraction of the time that keys take, and there may be hundreds of thousands.
    groups: defaultdict[tuple[bool, int], list[str]] = defaultdict(list)
    for path in chain(paths - folders, folders):
        groups[path[:1] == "." or "/." in path, path.count("/")].append(path)
    return [
        IndexedName(f"{path}/", f"{lower}/", lower.rpartition("/")[2], is_folder=True)
        if path in folders
        else IndexedName(path, lower, lower.rpartition("/")[2], is_folder=False)
        for _, group in sorted(groups.items())
        for path in sorted(group)
        for lower in (path.lower(),)
    ]


def find_names(
    names: Iterable[IndexedName], query: str, kind: NameKind | None, limit: int
) -> list[IndexedName]:
    """Return the names that contain the query's characters in order, in any case; the best first.

    Best is the whole name, then its stem, its start, a word of it, a part of it, a part of the
    path, and then the name with the characters in the fewest pieces; equal ones stay in the order
    of `names`. Spaces in a query are dropped.
    """
    if kind is not None:
        names = [name for name in names if name.is_folder == (kind == "directory")]
    query_letters = "".join(query.lower().removeprefix("./").split())
    groups = _rank_in_groups(list(names), query_letters) if query_letters else (names,)
    best: list[IndexedName] = []
    for group in groups:
        best += islice(group, limit - len(best))
        if len(best) >= limit:
            break
    return best


def _rank_in_groups(
    names: list[IndexedName], query_letters: str
) -> Iterator[Iterable[IndexedName]]:
    """Yield the matching names in groups, the best first.
    A group is computed only if those before are too small.
    """
    containing = [name for name in names if query_letters in name.lower]
    starting = [name for name in containing if name.name.startswith(query_letters)]
    yield sorted(
        starting,
        key=lambda name: (name.name != query_letters, name.name.partition(".")[0] != query_letters),
    )
    has_word = re.compile(rf"(?<![a-z0-9]){re.escape(query_letters)}").search
    within_name = [
        name
        for name in containing
        if query_letters in name.name and not name.name.startswith(query_letters)
    ]
    yield sorted(within_name, key=lambda name: has_word(name.name) is None)
    within_path = [name for name in containing if query_letters not in name.name]
    yield sorted(
        within_path,
        key=lambda name: (
            name.lower.rstrip("/") != query_letters.rstrip("/"),
            has_word(name.lower) is None,
        ),
    )
    # Possessive quantifiers: a name that does not match is given up after one look
    # at each of its characters.
    match_scattered = re.compile(
        "".join(f"[^{re.escape(char)}]*+{re.escape(char)}" for char in query_letters), re.DOTALL
    ).match
    scattered = [
        name for name in names if match_scattered(name.lower) and query_letters not in name.lower
    ]
    in_name = [name for name in scattered if match_scattered(name.name)]
    yield sorted(in_name[:_MAX_RANKED], key=lambda name: _count_pieces(name.name, query_letters))
    yield in_name[_MAX_RANKED:]
    in_path = [name for name in scattered if not match_scattered(name.name)]
    yield sorted(in_path[:_MAX_RANKED], key=lambda name: _count_pieces(name.lower, query_letters))
    yield in_path[_MAX_RANKED:]


def _count_pieces(text: str, query_letters: str) -> tuple[int, int]:
    """Return in how many pieces a text has the characters, searched from its end,
    and how far these reach.
    """
    last = position = text.rfind(query_letters[-1])
    pieces = 1
    for char in reversed(query_letters[:-1]):
        before = text.rfind(char, 0, position)
        pieces += before != position - 1
        position = before
    return pieces, last - position
