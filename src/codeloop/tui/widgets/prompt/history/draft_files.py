"""Stores drafts and queued prompts in files. Those of a process that has ended are taken over by a later one."""

import os
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import create_private_folder, lock, read_start, write_atomically
from codeloop.schema.bounds.tui import PROMPT_BLOB
from codeloop.schema.wire import DECODE_ERRORS
from codeloop.tui.widgets.prompt.history.stored_prompt import ChipContents, StoredPrompt
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry


class DraftFiles:
    """The files in `folder`, named by key and process. A process owns its files, and holds a lock while it lives."""

    def __init__(self, folder: Path, contents: ChipContents) -> None:
        self._folder = folder
        self._contents = contents
        # With a random part, since numbers of processes are used again.
        self._process_id = f"{os.getpid():x}{os.urandom(4).hex()}"
        self._lock_stack = ExitStack()
        self._has_lock = False

    def save(self, key: str, draft: StoredPrompt | None) -> None:
        """Store the draft of a session (by its id, or a name for a new one); None removes it. Raises OSError."""
        has_content = draft is not None and (draft.text or draft.mode == "shell")
        self._write(key, msgspec.json.encode(self._contents.pack(draft)) if draft is not None and has_content else b"")

    def load(self, key: str) -> StoredPrompt | None:
        """Return the draft of a session in this process; None: there is none."""
        try:
            prompt = msgspec.json.decode(read_start(self._find_path(key), PROMPT_BLOB.value), type=StoredPrompt)
        except (OSError, *DECODE_ERRORS):
            return None
        return self._contents.unpack(prompt)

    def save_queue(self, key: str, prompts: list[PromptEntry]) -> None:
        """Store the prompts that wait for the end of a session's turn. Raises OSError."""
        self._write(f"{key}-queue", msgspec.json.encode(prompts) if prompts else b"")

    def load_queue(self, key: str) -> list[PromptEntry]:
        """Return the queued prompts of a session: this process's, or without any, those left behind by an ended one."""
        self.adopt(f"{key}-queue")
        try:
            data = read_start(self._find_path(f"{key}-queue"), PROMPT_BLOB.value)
            return msgspec.json.decode(data, type=list[PromptEntry])
        except (OSError, *DECODE_ERRORS):
            return []

    def adopt(self, key: str) -> bool:
        """Take over the latest draft of a session from an ended process; only one process can rename it.

        Return whether there was one.
        """
        own_path = self._find_path(key)
        if own_path.exists() or not self._folder.is_dir():
            return False
        abandoned_paths = [path for path in self._folder.glob(f"{key}.*.json") if _remove_dead_lock(path)]
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
