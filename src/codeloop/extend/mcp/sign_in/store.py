"""Tokens of remote servers, in a file of mode 0600, each bound to the address that it was given for."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from codeloop.config.paths import Paths
from codeloop.kit.small_files import locked, make_private, read_start, write_atomically
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CREDENTIALS_BYTES, MCP_START
from codeloop.schema.wire import JSON, Wire

_EARLY = 30.0  # seconds: a token that ends so soon is renewed first


class ServerSignIn(Wire):
    """What was given for one server. `expires`: seconds since 1970, 0 for unknown; `client`: our registration.

    `wanted`: the scopes that a call lacked, for the next sign-in.
    """

    url: str
    access: str
    refresh: str = ""
    expires: float = 0.0
    scope: str = ""
    wanted: str = ""
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    resource: str = ""
    client: JSON = {}

    @property
    def is_over(self) -> bool:
        """Return whether the token has ended, or is about to."""
        return bool(self.expires) and time.time() > self.expires - _EARLY

    def renewed(self, answer: JSON) -> "ServerSignIn":
        """Return it with what a token endpoint gave; what that leaves out stays."""
        seconds = answer.get("expires_in")
        return msgspec.structs.replace(
            self,
            access=str(answer["access_token"]),
            refresh=str(answer.get("refresh_token") or self.refresh),
            expires=time.time() + float(seconds) if seconds else 0.0,
            scope=str(answer.get("scope") or self.scope),
        )


class SignIns:
    """The file of sign-ins, by the servers' names."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def get(self, name: str, url: str) -> ServerSignIn | None:
        """Return the sign-in stored for a server at exactly this address. Raises CodeloopError: the file is broken."""
        found = self._read().get(name)
        return found if found is not None and found.url == url else None

    def put(self, name: str, entry: ServerSignIn | None) -> bool:
        """Store an entry, or remove it; return whether there was one. Raises CodeloopError."""
        target = Path(os.path.realpath(self._file))
        try:
            make_private(target.parent)
            with locked(self._lock("write"), MCP_START.seconds):
                every = self._read()
                before = every.pop(name, None)
                if entry is not None:
                    every[name] = entry
                write_atomically(target, msgspec.json.format(msgspec.json.encode(every)) + b"\n", sync=True)
        except (OSError, TimeoutError) as error:
            raise CodeloopError(f"{target} can't be written: {error}. Nothing was changed.") from error
        return before is not None

    @asynccontextmanager
    async def renewing(self) -> AsyncGenerator[None]:
        """Hold what lets only one process renew a token. Raises CodeloopError."""
        lock = locked(self._lock("renew"), MCP_START.seconds)
        try:
            make_private(self._file.parent)
            await asyncio.to_thread(lock.__enter__)
        except (OSError, TimeoutError) as error:
            raise CodeloopError(f"another process holds {self._lock('renew')}: {error}") from error
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def _lock(self, what: str) -> Path:
        return self._file.with_name(f"{self._file.name}.{what}.lock")

    def _read(self) -> dict[str, ServerSignIn]:
        try:
            return msgspec.json.decode(read_start(self._file, CREDENTIALS_BYTES.value), type=dict[str, ServerSignIn])
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CodeloopError(f"{self._file} can't be read ({error}). Move it away and sign in again.") from error


def sign_ins_of(paths: Paths) -> SignIns:
    """Return the file of sign-ins."""
    return SignIns(paths.data / "mcp-auth.json")
