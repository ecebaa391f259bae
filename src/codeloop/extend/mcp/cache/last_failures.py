"""Stores the last failure of each server on disk, for lists of servers that don't start any."""

import time
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import create_private_folder, read_start, write_atomically
from codeloop.schema.limits import MCP_FILE
from codeloop.schema.wire import DECODE_ERRORS, Wire


class LastFailure(Wire):
    """Why a server could not be used, and since when (`at`: seconds since 1970).

    `state`: `failed`, `needs_auth` or `needs_client_registration`. `challenge`: for `needs_auth`,
    the header `WWW-Authenticate` of the refusal.
    """

    state: str
    reason: str
    at: float
    challenge: str = ""

    @property
    def description(self) -> str:
        """The reason, with the time if a retry may help."""
        # A missing sign-in does not pass by itself, so the time says nothing.
        if self.state != "failed":
            return self.reason
        return f"{self.reason} ({time.strftime('%Y-%m-%d %H:%M', time.localtime(self.at))}; the next call tries again)"


class LastFailures:
    """The failures by the hash of the server's definition, a file each.
    A file that can't be read counts as missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, digest: str) -> LastFailure | None:
        """Return why a definition's server failed when last tried;
        None: it worked, or was not tried.
        """
        with suppress(OSError, *DECODE_ERRORS):
            return msgspec.json.decode(
                read_start(self._file(digest), MCP_FILE.value), type=LastFailure
            )
        return None

    def put(self, digest: str, failure: LastFailure | None) -> None:
        """Store a failure; None: it works. Write errors are ignored."""
        with suppress(OSError):
            if failure is None:
                self._file(digest).unlink(missing_ok=True)
                return
            create_private_folder(self._folder)
            write_atomically(self._file(digest), msgspec.json.encode(failure))

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}.failed.json"
