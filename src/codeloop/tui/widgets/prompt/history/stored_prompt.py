"""The form in which a prompt is stored in a file; large chips have files of their own."""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import create_private_folder, read_start, write_atomically
from codeloop.schema.bounds.tui import PROMPT_BLOB, PROMPT_BLOB_AGE
from codeloop.schema.wire import DECODE_ERRORS
from codeloop.tui.editor.chips import Chip, Chips
from codeloop.tui.widgets.prompt.prompt_entry import Mode

_MAX_INLINE_CHARACTERS = 8 * 1024
"""Characters of a chip that is stored within the prompt; a larger one gets a file of its own."""


class StoredPrompt(Struct, frozen=True, omit_defaults=True):
    """The editor's content: text, chips and cursor;
    `at`: when it was sent or stashed, in ms since the epoch.

    In a file, `ChipContents.pack` has replaced the content of each large chip by the
    name of a file of its own.
    """

    text: str
    mode: Mode = "prompt"
    chips: Chips = {}
    at: int = 0
    cursor: int | None = None


class ChipContents:
    """The files in `folder`: contents of chips, each named by its hash,
    so that equal ones are stored once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pack(self, prompt: StoredPrompt) -> StoredPrompt:
        """Return a prompt whose large chips name the files that hold their contents.
        Raises OSError.
        """
        chips = {char: self._save(chip) for char, chip in prompt.chips.items()}
        return msgspec.structs.replace(prompt, chips=chips)

    def unpack(self, prompt: StoredPrompt) -> StoredPrompt:
        """Return a prompt with the contents of its chips;
        a chip whose file is gone becomes its label as text.
        """
        chips = {char: self._load(chip) for char, chip in prompt.chips.items()}
        return msgspec.structs.replace(prompt, chips=chips)

    def _save(self, chip: Chip) -> Chip:
        if len(chip.text) + len(chip.url) <= _MAX_INLINE_CHARACTERS or chip.file:
            return chip
        data = msgspec.json.encode(chip)
        name = hashlib.sha256(data).hexdigest()
        create_private_folder(self._folder)
        path = self._folder / name
        if path.exists():
            # Used again, so its age counts from now.
            os.utime(path)
        else:
            self._remove_old()
            write_atomically(path, data)
        return Chip(label=chip.label, mime=chip.mime, name=chip.name, file=name)

    def _load(self, chip: Chip) -> Chip:
        if not chip.file:
            return chip
        try:
            return msgspec.json.decode(
                read_start(self._folder / chip.file, PROMPT_BLOB.value), type=Chip
            )
        except (OSError, *DECODE_ERRORS):
            return Chip(label=chip.label, text=chip.label)

    def _remove_old(self) -> None:
        """Remove contents that were not stored again for the time of `PROMPT_BLOB_AGE`."""
        oldest = time.time() - PROMPT_BLOB_AGE.seconds
        for path in self._folder.iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
