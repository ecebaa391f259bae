"""The file by which clients of OpenCode 2 find the server that runs as a service of the user:
`$XDG_STATE_HOME/opencode/service.json`, which nobody else can read.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from codeloop.config.files import read_text, write_private
from codeloop.kit.processes import is_alive, read_start_time
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.schema.wire import DECODE_ERRORS, decode_json, encode_json, replace


class PublishedService(Struct, frozen=True, omit_defaults=True):
    """A server that runs, as its file describes it. `started`: the start time of its process,
    since another one may have its id later; "": a file of another program does not say.
    """

    url: str
    pid: int
    version: str = ""
    password: str | None = None
    started: str = ""


def _find_file(home: Path, environment: Mapping[str, str]) -> Path:
    state = environment.get("XDG_STATE_HOME") or home / ".local" / "state"
    return Path(state) / "opencode" / "service.json"


def publish_service(home: Path, environment: Mapping[str, str], service: PublishedService) -> Path:
    """Write the file of a server, and return its path. Raises CodeloopError: another service runs;
    OSError.
    """
    file = _find_file(home, environment)
    other = _read_service(file)
    if other is not None and other.pid != service.pid and is_alive(other.pid, other.started):
        raise CodeloopError(
            f"A service runs at {other.url} (process {other.pid}). Stop it first, or leave --service out."
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_private(
        file, encode_json(replace(service, started=read_start_time(service.pid))).decode()
    )
    return file


def withdraw_service(home: Path, environment: Mapping[str, str]) -> None:
    """Remove the file, if it is this process's."""
    file = _find_file(home, environment)
    service = _read_service(file)
    if service is not None and service.pid == os.getpid():
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _read_service(file: Path) -> PublishedService | None:
    """Return the server that the file describes; None: there is no such file, or it is damaged."""
    try:
        text = read_text(file, CONFIG_BYTES.value)
        return None if text is None else decode_json(text, PublishedService)
    except (CodeloopError, OSError, *DECODE_ERRORS):
        return None
