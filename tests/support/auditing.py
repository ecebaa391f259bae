"""What the program is about to do, seen just before it does it, so that a test can step into a race."""

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

Audit = Callable[[str, tuple[Any, ...]], None]
_audits: list[Audit] = []
_own = threading.local()


@contextmanager
def audited(audit: Audit) -> Generator[None]:
    """Call `audit(event, arguments)` before each operation that Python audits, on the thread that is to do it.

    What the audit does itself is not reported. See `sys.addaudithook` and the table of audit events.
    """
    _install()
    _audits.append(audit)
    try:
        yield
    finally:
        _audits.remove(audit)


@cache
def _install() -> None:
    """Install the one hook of this process, which can't be removed any more."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not _audits or getattr(_own, "is_busy", False):
            return
        _own.is_busy = True
        try:
            for audit in _audits:
                audit(event, arguments)
        finally:
            _own.is_busy = False

    sys.addaudithook(hook)
