"""The log of a server: a file of bounded size that only its owner reads. No query of a URL is ever in it."""

import logging
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from codeloop.kit.small_files import make_private
from codeloop.kit.terminal_text import inert
from codeloop.schema.limits import SERVER_LOG, SERVER_LOG_LINE

LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NO_FAULT = "ASGI callable returned without completing handshake"
"""What uvicorn says of a WebSocket that was refused with a status."""


class FileLog(logging.Handler):
    """Appends to a file that is opened for each entry, so that it may be shared, removed or put aside by others.

    A full or read-only disk loses entries and nothing else.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        formatter = logging.Formatter("%(asctime)s %(levelname)s %(process)d %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        formatter.converter = time.gmtime
        self.setFormatter(formatter)
        self.addFilter(lambda record: not str(record.msg).startswith(_NO_FAULT))

    def emit(self, record: logging.LogRecord) -> None:
        """Write an entry."""
        with suppress(OSError, TypeError, ValueError):
            entry = inert(self.format(record))[: SERVER_LOG_LINE.value]
            self._append(entry.encode("utf-8", "replace") + b"\n")

    def _append(self, entry: bytes) -> None:
        make_private(self.path.parent)
        descriptor = os.open(self.path, _APPEND, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            os.write(descriptor, entry)
        finally:
            os.close(descriptor)
        if size + len(entry) > SERVER_LOG.value:
            self.path.replace(self.path.with_name(self.path.name + ".1"))


@contextmanager
def logged(folder: Path, level: str) -> Generator[Path]:
    """Have the server's log written to a file in `folder`, which is given, until the end of the block.

    `level`: a key of LEVELS; any other counts as INFO. Of uvicorn and asyncio only what is wrong is kept.
    """
    handler = FileLog(folder / "server.log")
    own = logging.getLogger("codeloop")
    others = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    before = [(each, each.level, each.propagate) for each in (own, *others)]
    for each in (own, *others):
        each.addHandler(handler)
        each.setLevel(logging.WARNING)
        each.propagate = False
    own.setLevel(LEVELS.get(level.upper(), logging.INFO))
    try:
        yield handler.path
    finally:
        for each, old, propagates in before:
            each.removeHandler(handler)
            each.setLevel(old)
            each.propagate = propagates
