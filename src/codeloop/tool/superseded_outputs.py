"""Finds the tool outputs that a request omits because a later call returned them again. Pure: reads stored messages.

A service caches the beginning of a request for some minutes after the last request. While the cache is warm, each
request begins with the bytes of the previous request. Once the cache is cold, or the beginning changes anyway (by a
compaction, or because old outputs are pruned), all outputs that are superseded by then are omitted for good.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.terminal_text import one_line
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import Part, ReasoningPart, TextPart, ToolPart, ToolStateCompleted
from codeloop.schema.wire import JSON
from codeloop.store.conversation import Entry, is_summary

UNCHANGED = "unchanged"
"""Metadata key of a `read` whose result only refers to the same lines in an earlier one."""
READ_AGAIN = "[superseded: {path} was read again below]"
CHANGED = "[superseded: {path} was changed below; read it again if you need it]"
RUN_AGAIN = "[superseded: the same command was run again below]"
ASKED_AGAIN = "[superseded: the same call was made again below]"
_MIN_OUTPUT_LENGTH = 300
"""Characters; shorter outputs stay in the request."""
_MAX_PATH_LENGTH = 200
_REPEATABLE = frozenset(("read", "grep", "glob", "list", "webfetch"))
"""Read-only tools; of two equal calls the later one has the current state."""
_EDITS = frozenset(("edit", "multiedit", "write"))
_PATCHED_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_CHANGES_FOLDER = re.compile(r"\b(?:cd|pushd|popd)\b")
_STARTS_WITH_CD = re.compile(r"\s*cd\s+/[^\s;&|]*\s*(?:&&|;)")


HOUR = 60 * 60_000
"""The lifetime (ms) of a cache that was requested to last an hour."""


class CacheAge(Struct, frozen=True):
    """The state of a service's cache after the first `seen` entries.

    `warm_until`: when the cache goes cold (ms since the epoch; 0: the cache is empty). `cold`: how many entries there
    were when a request last missed the cache.
    """

    seen: int = 0
    warm_until: int = 0
    cold: int = 0

    def after(self, entries: Sequence[Entry]) -> "CacheAge":
        """Return the state after all entries, of which the first `seen` are still the same."""
        age = self
        pruned = () if self.seen else sorted(_list_prune_times(entries))
        before = 0
        for index in range(self.seen, len(entries)):
            info = entries[index].info
            if not isinstance(info, AssistantMessage):
                continue
            created = info.time.created
            if is_summary(info):
                age = CacheAge(index + 1, 0, index + 1)
            elif not info.summary:
                is_cold = age.is_cold(created) or any(before < time <= created for time in pruned)
                from codeloop.model.quirks import get_cache_lifetime  # a first request needs none of it

                life = HOUR if info.tokens.cache.hour_write else get_cache_lifetime(info.provider_id)
                age = CacheAge(
                    index + 1,
                    max(age.warm_until, _find_request_time(entries[index]) + life),
                    index if is_cold else age.cold,
                )
            before = created
        if pruned and pruned[-1] > before:
            age = CacheAge(len(entries), 1, age.cold)
        return CacheAge(len(entries), age.warm_until, age.cold)

    def is_cold(self, now: int) -> bool:
        """Return whether a request made `now` (ms) misses the cache."""
        return 0 < self.warm_until < now

    def droppable(self, now: int) -> int:
        """Return how many of the first entries a request made `now` may drop superseded outputs from."""
        return self.seen if self.is_cold(now) else self.cold


def _find_request_time(entry: Entry) -> int:
    """Return when the service received the request of a step: about when its answer began."""
    starts = (start for part in entry.parts if (start := _find_start(part)) is not None)
    return max(entry.info.time.created, next(starts, 0))


def _find_start(part: Part) -> int | None:
    match part:
        case TextPart(time=time) | ReasoningPart(time=time):
            return time.start if time is not None else None
        case ToolPart(state=ToolStateCompleted(time=time)):
            return time.start
        case _:
            return None


def _list_prune_times(entries: Sequence[Entry]) -> set[int]:
    states = (part.state for entry in entries for part in entry.parts if isinstance(part, ToolPart))
    return {s.time.compacted for s in states if isinstance(s, ToolStateCompleted) and s.time.compacted is not None}


def find_superseded(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the tool parts whose output later ones superseded: id -> the line that replaces it."""
    later = _LaterCalls()
    notes: dict[str, str] = {}
    for cwd, part, state in _walk_backwards(entries):
        note = later.supersedes(cwd, part, state)
        is_large = len(state.output) >= _MIN_OUTPUT_LENGTH or bool(state.attachments)
        if note is not None and (is_large or state.time.compacted is not None):
            notes[part.id] = note
    return notes


def _walk_backwards(entries: Sequence[Entry]) -> Iterator[tuple[str, ToolPart, ToolStateCompleted]]:
    for entry in reversed(entries):
        if isinstance(entry.info, AssistantMessage):
            for part in reversed(entry.parts):
                if isinstance(part, ToolPart) and isinstance(part.state, ToolStateCompleted):
                    yield entry.info.path.cwd, part, part.state


class SupersededOutputs:
    """Tracks the outputs that the requests of a run omit, from step to step; `notes`: see `find_superseded`."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self._age = CacheAge()
        self._droppable = 0

    def update(self, entries: Sequence[Entry], known: int, now: int) -> bool:
        """Process new entries, for a request made `now`; return whether the omitted outputs changed.

        `known`: how many entries are the same as the last time.
        """
        is_reset = known < self._age.seen
        self._age = (CacheAge() if is_reset else self._age).after(entries)
        droppable = self._age.droppable(now)
        if droppable == self._droppable and not is_reset:
            return False
        self._droppable, before = droppable, self.notes
        self.notes = find_superseded(entries[:droppable])
        return self.notes != before


class _LaterCalls:
    """Collects the files that later calls read and changed, and the calls themselves."""

    def __init__(self) -> None:
        self._read: dict[str, list[tuple[int, int]]] = {}
        self._changed: set[str] = set()
        self._made: set[tuple[object, ...]] = set()
        self._moves = 0

    def supersedes(self, cwd: str, part: ToolPart, state: ToolStateCompleted) -> str | None:
        """Return the line that replaces the output of a superseded call, None for a current one; record the call."""
        arguments: JSON = state.input
        if part.tool == "read" and (lines := _read_lines_shown(state)) is not None:
            return self._reads(cwd, *lines, counts=UNCHANGED not in state.metadata)
        if part.tool in _REPEATABLE:
            return ASKED_AGAIN if self._is_again((cwd, part.tool, msgspec.json.encode(arguments))) else None
        if part.tool == "bash":
            return RUN_AGAIN if self._runs(cwd, arguments) else None
        if part.tool in _EDITS:
            self._changed.add(_make_absolute(cwd, str(arguments.get("filePath"))))
        elif part.tool == "apply_patch":
            patch = str(arguments.get("patchText"))
            self._changed.update(_make_absolute(cwd, path.strip()) for path in _PATCHED_FILE.findall(patch))
        return None

    def _reads(self, cwd: str, path: str, first: int, last: int, *, counts: bool) -> str | None:
        name = one_line(path.removeprefix(cwd.rstrip("/") + "/"), _MAX_PATH_LENGTH)
        again = self._read.setdefault(path, [])
        is_covered = any(start <= first and last <= end for start, end in again)
        if counts:
            again.append((first, last))
        if is_covered:
            return READ_AGAIN.format(path=name)
        return CHANGED.format(path=name) if path in self._changed else None

    def _runs(self, cwd: str, arguments: JSON) -> bool:
        command = str(arguments.get("command"))
        if arguments.get("run_in_background"):
            return False
        if _CHANGES_FOLDER.search(command):  # earlier commands may have run in another folder
            self._moves += 1
        is_fixed = _STARTS_WITH_CD.match(command) or str(arguments.get("workdir") or "").startswith("/")
        folder_state = -1 if is_fixed else self._moves
        return self._is_again(
            (cwd, "bash", command, arguments.get("workdir"), folder_state, bool(arguments.get("unchanged")))
        )

    def _is_again(self, call: tuple[object, ...]) -> bool:
        if call in self._made:
            return True
        self._made.add(call)
        return False


def _read_lines_shown(state: ToolStateCompleted) -> tuple[str, int, int] | None:
    """Return the path and the lines that a `read` returned uncut; None for any other result."""
    display: JSON = state.metadata.get("display") or {}
    if not display.get("path") or not display.get("lineEnd") or "outputPath" in state.metadata:
        return None
    return str(display["path"]), int(display["lineStart"]), int(display["lineEnd"])


def _make_absolute(cwd: str, path: str) -> str:
    return os.path.normpath(Path.home() / path[2:] if path.startswith("~/") else Path(cwd) / path)
