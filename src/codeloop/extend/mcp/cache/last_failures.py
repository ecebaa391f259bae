"""Why servers did not work when they were last tried: remembered on disk for a list that starts none."""

import time
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import make_private, read_start, write_atomically
from codeloop.schema.limits import MCP_FILE
from codeloop.schema.wire import Wire


class LastFailure(Wire):
    """A server's state and the reason for it; `at`: seconds since 1970; `challenge`: what it refused with."""

    state: str
    reason: str
    at: float
    challenge: str = ""

    @property
    def words(self) -> str:
        """The reason; with the time, where trying again may help."""
        if self.state != "failed":
            return self.reason
        return f"{self.reason} ({time.strftime('%Y-%m-%d %H:%M', time.localtime(self.at))}; the next call tries again)"


class LastFailures:
    """A file for each definition, by its hash. What can't be read counts as none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, digest: str) -> LastFailure | None:
        """Return why a definition's server did not work when it was last tried; None: it did, or nobody tried."""
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            return msgspec.json.decode(read_start(self._file(digest), MCP_FILE.value), type=LastFailure)
        return None

    def put(self, digest: str, failure: LastFailure | None) -> None:
        """Remember a failure; None: it works. Where the disk does not take it, nothing is lost but the reason."""
        with suppress(OSError):
            if failure is None:
                self._file(digest).unlink(missing_ok=True)
                return
            make_private(self._folder)
            write_atomically(self._file(digest), msgspec.json.encode(failure))

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}.failed.json"
