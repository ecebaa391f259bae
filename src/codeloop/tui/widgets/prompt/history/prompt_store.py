"""Stores the history of prompts, the drafts, the stash, and the frequent mentions of a project."""

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from codeloop.kit.small_files import (
    FileState,
    create_private_folder,
    lock,
    read_end,
    read_file_state,
    read_start,
    write_all,
    write_atomically,
)
from codeloop.schema.bounds.tui import (
    PROMPT_BLOB,
    PROMPT_HISTORY,
    PROMPT_LOCK,
    PROMPT_MENTIONS,
    PROMPT_STASH,
)
from codeloop.schema.ids import now_ms
from codeloop.schema.wire import DECODE_ERRORS
from codeloop.tui.widgets.prompt.history.stored_prompt import ChipContents, StoredPrompt
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry


class _DraftFiles:
    """The files in `folder`, named by key and process.
    A process owns its files, and holds a lock while it lives.
    """

    def __init__(self, folder: Path, contents: ChipContents) -> None:
        self._folder = folder
        self._contents = contents
        # With a random part, since numbers of processes are used again.
        self._process_id = f"{os.getpid():x}{os.urandom(4).hex()}"
        self._lock_stack = ExitStack()
        self._has_lock = False

    def save(self, key: str, draft: StoredPrompt | None) -> None:
        """Store the draft of a session (by its id, or a name for a new one); None removes it.
        Raises OSError.
        """
        has_content = draft is not None and (draft.text or draft.mode == "shell")
        self._write(
            key,
            msgspec.json.encode(self._contents.pack(draft))
            if draft is not None and has_content
            else b"",
        )

    def load(self, key: str) -> StoredPrompt | None:
        """Return the draft of a session in this process; None: there is none."""
        try:
            prompt = msgspec.json.decode(
                read_start(self._find_path(key), PROMPT_BLOB.value), type=StoredPrompt
            )
        except (OSError, *DECODE_ERRORS):
            return None
        return self._contents.unpack(prompt)

    def save_queue(self, key: str, prompts: list[PromptEntry]) -> None:
        """Store the prompts that wait for the end of a session's turn. Raises OSError."""
        self._write(f"{key}-queue", msgspec.json.encode(prompts) if prompts else b"")

    def load_queue(self, key: str) -> list[PromptEntry]:
        """Return the queued prompts of a session: this process's, or without any,
        those left behind by an ended one.
        """
        self.adopt(f"{key}-queue")
        try:
            data = read_start(self._find_path(f"{key}-queue"), PROMPT_BLOB.value)
            return msgspec.json.decode(data, type=list[PromptEntry])
        except (OSError, *DECODE_ERRORS):
            return []

    def adopt(self, key: str) -> bool:
        """Take over the latest draft of a session from an ended process;
        only one process can rename it.

        Return whether there was one.
        """
        own_path = self._find_path(key)
        if own_path.exists() or not self._folder.is_dir():
            return False
        abandoned_paths = [
            path for path in self._folder.glob(f"{key}.*.json") if _remove_dead_lock(path)
        ]
        for path in sorted(abandoned_paths, key=_get_modification_time, reverse=True):
            with suppress(OSError):
                # Locked first: a renamed file of a process without a lock would look abandoned.
                self._acquire_lock()
                path.rename(own_path)
                return True
        return False

    def close(self) -> None:
        """Release the remaining files for other processes."""
        self._lock_stack.close()
        if self._has_lock:
            # A file that stays is harmless: nothing holds its lock.
            with suppress(OSError):
                (self._folder / f"{self._process_id}.alive").unlink(missing_ok=True)
        self._has_lock = False

    def _find_path(self, key: str) -> Path:
        return self._folder / f"{key}.{self._process_id}.json"

    def _write(self, key: str, data: bytes) -> None:
        if not data:
            with suppress(FileNotFoundError, NotADirectoryError):
                self._find_path(key).unlink()
            return
        create_private_folder(self._folder)
        self._acquire_lock()
        write_atomically(self._find_path(key), data)

    def _acquire_lock(self) -> None:
        """Acquire the lock that tells other processes that this one lives and owns its files."""
        if not self._has_lock:
            self._lock_stack.enter_context(lock(self._folder / f"{self._process_id}.alive", 1))
            self._has_lock = True


def _remove_dead_lock(path: Path) -> bool:
    """Return whether the process that wrote a draft has ended; then its lock file is removed."""
    # The file is named `KEY.PROCESS.json`.
    lock_path = path.with_name(f"{path.name.split('.')[-2]}.alive")
    # The system releases the lock of a process however it ends, even by SIGKILL.
    try:
        with lock(lock_path, 0):
            lock_path.unlink(missing_ok=True)
            return True
    except (TimeoutError, OSError):
        return False


def _get_modification_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


# `O_NOFOLLOW`: a link in the folder must not make us write elsewhere.
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_HALF_LIFE_MS = 7 * 86_400_000.0
"""Milliseconds after which a mention counts half."""


class Mention(NamedTuple):
    """How often a file or an agent was mentioned, where older mentions count less.

    `weight`: the number as of the last mention; `at`: the time of that, in ms since the epoch.
    """

    weight: float
    at: int


class PromptStore:
    """The files in `folder`, which all processes of the user in this project share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chip_contents = ChipContents(folder / "contents")
        self.drafts = _DraftFiles(folder / "drafts", self.chip_contents)
        # Each with the state of the file that it was read from: the file is read again
        # once that has changed.
        self._history: tuple[FileState, list[StoredPrompt]] = (None, [])
        self._mentions: tuple[FileState, dict[str, Mention]] = (None, {})

    def list_history(self) -> list[StoredPrompt]:
        """Return the prompts that were sent in this project by any process, the latest last."""
        path = self.folder / "history.jsonl"
        state = read_file_state(path)
        if state != self._history[0]:
            self._history = state, _read_prompts(path)[-PROMPT_HISTORY.value :]
        return self._history[1]

    def add_to_history(self, prompt: StoredPrompt) -> None:
        """Add a prompt to the history, unless it repeats the last one. Raises OSError."""
        history = self.list_history()
        if not prompt.text.strip() or (history and _is_same_prompt(history[-1], prompt)):
            return
        create_private_folder(self.folder)
        path = self.folder / "history.jsonl"
        with self._hold_lock():
            _append(path, msgspec.json.encode(self.chip_contents.pack(_add_time(prompt))))
            prompts = _read_prompts(path)
            # Cut only once it is a quarter too long, so that not every prompt
            # rewrites the whole file.
            if len(prompts) > PROMPT_HISTORY.value * 5 // 4:
                _write_lines(path, prompts[-PROMPT_HISTORY.value :])

    def list_stash(self) -> list[StoredPrompt]:
        """Return the stashed prompts, the latest last."""
        return _read_prompts(self.folder / "stash.jsonl")

    def push_stash(self, prompt: StoredPrompt) -> None:
        """Push a prompt onto the stash. Raises OSError."""
        create_private_folder(self.folder)
        with self._hold_lock():
            prompts = [*self.list_stash(), self.chip_contents.pack(_add_time(prompt))][
                -PROMPT_STASH.value :
            ]
            _write_lines(self.folder / "stash.jsonl", prompts)

    def pop_stash(self, index: int = -1) -> StoredPrompt | None:
        """Pop a prompt from the stash; the latest unless an index is given. Raises OSError."""
        if not self.list_stash():
            return None
        # Read again under the lock: another process may have taken it.
        with self._hold_lock():
            prompts = self.list_stash()
            if not -len(prompts) <= index < len(prompts):
                return None
            prompt = prompts.pop(index)
            _write_lines(self.folder / "stash.jsonl", prompts)
        return self.chip_contents.unpack(prompt)

    def add_mention(self, name: str) -> None:
        """Count a mention of a file or an agent. Raises OSError."""
        create_private_folder(self.folder)
        path = self.folder / "mentions.json"
        with self._hold_lock():
            mentions = dict(self.read_mentions())
            mentions[name] = Mention(self.compute_mention_weight(name) + 1.0, now_ms())
            if len(mentions) > PROMPT_MENTIONS.value:
                lightest = min(mentions, key=self.compute_mention_weight)
                # Not the new one: with one mention it is often the lightest,
                # and would never get in.
                mentions.pop(lightest if lightest != name else "", None)
            write_atomically(path, msgspec.json.encode(mentions))
        # Read again with the next use.
        self._mentions = (None, {})

    def compute_mention_weight(self, name: str) -> float:
        """Return how often a name was mentioned; a mention counts half after a week,
        a quarter after two.
        """
        mention = self.read_mentions().get(name)
        if mention is None:
            return 0.0
        # Not negative, should the clock have been set back.
        age = max(now_ms() - mention.at, 0)
        return mention.weight * 0.5 ** (age / _HALF_LIFE_MS)

    def read_mentions(self) -> dict[str, Mention]:
        """Return the mentions of this project by their names,
        read from the file only if it has changed.
        """
        path = self.folder / "mentions.json"
        state = read_file_state(path)
        if state != self._mentions[0]:
            self._mentions = state, _read_mentions(path)
        return self._mentions[1]

    def close(self) -> None:
        """Release the drafts for other processes."""
        self.drafts.close()

    def _hold_lock(self) -> ExitStack:
        """Return the held lock on the folder, or after a timeout none: a process that
        hangs must not block typing.
        """
        stack = ExitStack()
        with suppress(TimeoutError):
            stack.enter_context(lock(self.folder, PROMPT_LOCK.seconds))
        return stack


def _add_time(prompt: StoredPrompt) -> StoredPrompt:
    return msgspec.structs.replace(prompt, at=prompt.at or now_ms())


def _is_same_prompt(first: StoredPrompt, second: StoredPrompt) -> bool:
    # Prompts with chips never count as the same: their contents are not compared.
    return (
        (first.text, first.mode) == (second.text, second.mode)
        and not first.chips
        and not second.chips
    )


def _read_prompts(path: Path) -> list[StoredPrompt]:
    """Return the prompts of a file, skipping incomplete lines;
    of a file that is too large, the latest ones.
    """
    try:
        lines = read_end(path, PROMPT_BLOB.value).split(b"\n")
    except OSError:
        return []
    prompts: list[StoredPrompt] = []
    for line in lines:
        with suppress(*DECODE_ERRORS):
            prompts.append(msgspec.json.decode(line, type=StoredPrompt))
    return prompts


def _append(path: Path, line: bytes) -> None:
    """Append a line to a file in one write, first ending an incomplete last line."""
    descriptor = os.open(path, _APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        # A process that was killed may have left half a line: only that one is lost.
        is_cut_off = size > 0 and _read_last_byte(path) != b"\n"
        write_all(descriptor, b"\n" * is_cut_off + line + b"\n")
    finally:
        os.close(descriptor)


def _read_last_byte(path: Path) -> bytes:
    """Return the last byte of a file. Raises OSError."""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)


def _write_lines(path: Path, prompts: list[StoredPrompt]) -> None:
    write_atomically(path, b"".join(msgspec.json.encode(each) + b"\n" for each in prompts))


def _read_mentions(path: Path) -> dict[str, Mention]:
    try:
        return msgspec.json.decode(read_start(path, PROMPT_BLOB.value), type=dict[str, Mention])
    except (OSError, *DECODE_ERRORS):
        return {}
