"""Calls a test just before the program does something, so that the test can produce a race."""

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

Audit = Callable[[str, tuple[Any, ...]], None]
_audits: list[Audit] = []
_thread = threading.local()


@contextmanager
def add_audit(audit: Audit) -> Generator[None]:
    """Call `audit(event, arguments)` before each operation that Python audits,
    on the operation's thread.

    Operations of the audit itself are not reported.
    See `sys.addaudithook` and the table of audit events.
    """
    _install()
    _audits.append(audit)
    try:
        yield
    finally:
        _audits.remove(audit)


@cache
def _install() -> None:
    """Install the hook of this process, which can't be removed again."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not _audits or getattr(_thread, "is_busy", False):
            return
        _thread.is_busy = True
        try:
            for audit in _audits:
                audit(event, arguments)
        finally:
            _thread.is_busy = False

    sys.addaudithook(hook)
