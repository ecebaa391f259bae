"""Finds the tool outputs that a request omits because a later call returned them again.
Pure: reads stored messages.

A service caches the beginning of a request for some minutes after the last request. While the cache
is warm, each request begins with the bytes of the previous request. Once the cache is cold, or the
beginning changes anyway (by a compaction, or because old outputs are pruned), all outputs that are
superseded by then are omitted for good.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import Part, ReasoningPart, TextPart, ToolPart, ToolStateCompleted
from codeloop.schema.wire import JSON
from codeloop.store.conversation import Entry, is_summary

UNCHANGED_KEY = "unchanged"
"""The metadata key of a call whose result only refers to the same lines, or the whole result,
of an earlier call.
"""
READ_AGAIN_NOTE = "[superseded: {path} was read again below]"
CHANGED_NOTE = "[superseded: {path} was changed below; read it again if you need it]"
RUN_AGAIN_NOTE = "[superseded: the same command was run again below]"
CALLED_AGAIN_NOTE = "[superseded: the same call was made again below]"
# Characters; replacing a shorter output by a note saves too little.
_MIN_OUTPUT_LENGTH = 300
_MAX_PATH_LENGTH = 200
REPEATABLE_TOOLS = frozenset(("read", "grep", "glob", "list", "webfetch"))
"""Read-only tools: of two equal calls, the later one returned the current state."""
_ONE_FILE_EDIT_TOOLS = frozenset(("edit", "multiedit", "write"))
"""The tools that change the file `filePath`."""
_PATCHED_FILE = r"(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$"
# Matches a command that may change the folder of the commands after it.
_CHANGES_FOLDER = r"\b(?:cd|pushd|popd)\b"
# Matches `cd /abs/path && ...` and `cd /abs/path;
# ...`: such a command runs in the folder that it names.
_STARTS_WITH_CD = r"\s*cd\s+/[^\s;&|]*\s*(?:&&|;)"
# The lifetime of a cache that was requested to last an hour.
HOUR_MS = 60 * 60_000


class CacheAge(Struct, frozen=True):
    """The state of a service's cache after the first `seen_entries` entries of a conversation.

    `warm_until`: when the cache goes cold (ms since the epoch; 0: the cache is empty).
    `cold_entries`: how many entries there were when a request last missed the cache.
    """

    seen_entries: int = 0
    warm_until: int = 0
    cold_entries: int = 0

    def advance(self, entries: Sequence[Entry]) -> "CacheAge":
        """Return the state after all `entries`, of which the first `seen_entries`
        are still the same.
        """
        age = self
        pruned = () if self.seen_entries else sorted(_list_prune_times(entries))
        before = 0
        for index in range(self.seen_entries, len(entries)):
            info = entries[index].info
            if not isinstance(info, AssistantMessage):
                continue
            created = info.time.created
            # After a compaction the next request begins differently, so nothing of it is cached. A
            # summary that was not completed changes nothing.
            if is_summary(info):
                age = CacheAge(index + 1, 0, index + 1)
            elif not info.summary:
                is_cold = age.is_cold(created) or any(before < time <= created for time in pruned)
                # Imported late: the first request of a session does not need it.
                from codeloop.model.quirks import get_cache_lifetime

                lifetime = (
                    HOUR_MS
                    if info.tokens.cache.hour_write
                    else get_cache_lifetime(info.provider_id)
                )
                age = CacheAge(
                    index + 1,
                    max(age.warm_until, _find_request_time(entries[index]) + lifetime),
                    index if is_cold else age.cold_entries,
                )
            before = created
        if pruned and pruned[-1] > before:
            # 1 ms after the epoch: pruning changed the beginning,
            # so the next request misses the cache.
            age = CacheAge(len(entries), 1, age.cold_entries)
        return CacheAge(len(entries), age.warm_until, age.cold_entries)

    def is_cold(self, now: int) -> bool:
        """Return whether a request made `now` (ms) misses the cache."""
        return 0 < self.warm_until < now

    def count_droppable(self, now: int) -> int:
        """Return how many of the first entries may lose superseded outputs
        in a request made `now`.
        """
        return self.seen_entries if self.is_cold(now) else self.cold_entries


def _find_request_time(entry: Entry) -> int:
    """Return when the service received the request of a step,
    which is about when its answer began.
    """
    starts = (start for start in map(_find_start, entry.parts) if start is not None)
    return max(entry.info.time.created, next(starts, 0))


def _find_start(part: Part) -> int | None:
    """Return when a part began to arrive, in ms since the epoch; None: it is not known."""
    match part:
        case TextPart(time=time) | ReasoningPart(time=time):
            return time.start if time is not None else None
        case ToolPart(state=ToolStateCompleted(time=time)):
            return time.start
        case _:
            return None


def _list_prune_times(entries: Sequence[Entry]) -> set[int]:
    """Return the times at which old outputs were left out of requests, in ms since the epoch."""
    states = (part.state for entry in entries for part in entry.parts if isinstance(part, ToolPart))
    return {
        s.time.compacted
        for s in states
        if isinstance(s, ToolStateCompleted) and s.time.compacted is not None
    }


def find_superseded(entries: Sequence[Entry]) -> dict[str, str]:
    """Return, by their ids, the tool parts with superseded outputs,
    each with the line that replaces the output.
    """
    later = _LaterCalls()
    notes: dict[str, str] = {}
    for cwd, part, state in _walk_backwards(entries):
        note = later.record_call(cwd, part, state)
        # The output of a compacted part is a placeholder already; the note says more.
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
    """The outputs that the requests of a run omit, updated from step to step.
    `notes`: see `find_superseded`.
    """

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self._age = CacheAge()
        self._droppable = 0

    def update(self, entries: Sequence[Entry], known: int, now: int) -> bool:
        """Process new entries, for a request made `now`;
        return whether the omitted outputs changed.

        `known`: how many entries are the same as the last time.
        """
        is_reset = known < self._age.seen_entries
        self._age = (CacheAge() if is_reset else self._age).advance(entries)
        droppable = self._age.count_droppable(now)
        if droppable == self._droppable and not is_reset:
            return False
        self._droppable, before = droppable, self.notes
        self.notes = find_superseded(entries[:droppable])
        return self.notes != before


class _LaterCalls:
    """The files that later calls read and changed, and the later calls themselves:
    entries are visited backwards.
    """

    def __init__(self) -> None:
        self._later_reads: dict[str, list[tuple[int, int]]] = {}
        self._changed_paths: set[str] = set()
        self._made_calls: set[tuple[object, ...]] = set()
        self._folder_changes = 0

    def record_call(self, cwd: str, part: ToolPart, state: ToolStateCompleted) -> str | None:
        """Record a call; return the line that replaces its output if later calls superseded it,
        else None.
        """
        arguments: JSON = state.input
        if part.tool == "read" and (lines := _get_returned_lines(state)) is not None:
            return self._record_read(cwd, lines, shows_lines=UNCHANGED_KEY not in state.metadata)
        if part.tool in REPEATABLE_TOOLS:
            if UNCHANGED_KEY in state.metadata:
                return None
            return (
                CALLED_AGAIN_NOTE
                if self._record_repeat((cwd, part.tool, msgspec.json.encode(arguments)))
                else None
            )
        if part.tool == "bash":
            return RUN_AGAIN_NOTE if self._record_command(cwd, arguments) else None
        if part.tool in _ONE_FILE_EDIT_TOOLS:
            self._changed_paths.add(_make_absolute(cwd, str(arguments.get("filePath"))))
        elif part.tool == "apply_patch":
            patch = str(arguments.get("patchText"))
            self._changed_paths.update(
                _make_absolute(cwd, path.strip()) for path in re.findall(_PATCHED_FILE, patch)
            )
        return None

    def _record_read(self, cwd: str, lines: "_ReturnedLines", *, shows_lines: bool) -> str | None:
        """Record a read; return the note for it. `shows_lines`: it has the text,
        not a reference to an earlier read.
        """
        path, first, last = lines
        name = one_line(path.removeprefix(cwd.rstrip("/") + "/"), _MAX_PATH_LENGTH)
        later_ranges = self._later_reads.setdefault(path, [])
        is_covered = any(start <= first and last <= end for start, end in later_ranges)
        if shows_lines:
            later_ranges.append((first, last))
        if is_covered:
            return READ_AGAIN_NOTE.format(path=name)
        return CHANGED_NOTE.format(path=name) if path in self._changed_paths else None

    def _record_command(self, cwd: str, arguments: JSON) -> bool:
        """Record a command; return whether a later one is equal to it,
        and runs in the same folder.
        """
        command = str(arguments.get("command"))
        if arguments.get("run_in_background"):
            return False
        # A relative command may do something else before a `cd` than after it, so only commands
        # without one between them are compared.
        if re.search(_CHANGES_FOLDER, command):
            self._folder_changes += 1
        is_fixed = re.match(_STARTS_WITH_CD, command) or str(
            arguments.get("workdir") or ""
        ).startswith("/")
        # -1 stands for the folder that the command itself names.
        folder_state = -1 if is_fixed else self._folder_changes
        return self._record_repeat(
            (
                cwd,
                "bash",
                command,
                arguments.get("workdir"),
                folder_state,
                bool(arguments.get("unchanged")),
            )
        )

    def _record_repeat(self, call: tuple[object, ...]) -> bool:
        """Record a call; return whether a later call is equal to it."""
        if call in self._made_calls:
            return True
        self._made_calls.add(call)
        return False


class _ReturnedLines(NamedTuple):
    """The lines in a result of `read`: the absolute path of the file,
    and the numbers of the first and last line.
    """

    path: str
    first: int
    last: int


def _get_returned_lines(state: ToolStateCompleted) -> _ReturnedLines | None:
    """Return the lines that a `read` returned; None: its result was cut,
    or is that of a folder or an attachment.
    """
    display: JSON = state.metadata.get("display") or {}
    if not display.get("path") or not display.get("lineEnd") or "outputPath" in state.metadata:
        return None
    return _ReturnedLines(str(display["path"]), int(display["lineStart"]), int(display["lineEnd"]))


def _make_absolute(cwd: str, path: str) -> str:
    return os.path.normpath(Path.home() / path[2:] if path.startswith("~/") else Path(cwd) / path)
