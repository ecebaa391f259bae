"""The lock under which one of all processes renews a sign-in."""

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

from codeloop.kit.small_files import lock
from codeloop.schema.bounds.cloud import CLOUD_LOCK

_POLL_SECONDS = 0.05


async def acquire_renewal_lock(stack: ExitStack, path: Path) -> None:
    """Take a lock file until `stack` is closed.

    Goes on without the lock if the folder can't be written to,
    or if another process holds it for long: renewing
    a sign-in twice is better than not at all.
    """
    end = time.monotonic() + CLOUD_LOCK.seconds
    while time.monotonic() < end:
        try:
            stack.enter_context(lock(path, 0))
        except TimeoutError:
            await asyncio.sleep(_POLL_SECONDS)
        except OSError:
            return
        else:
            return
