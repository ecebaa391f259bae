"""The credential of a running server: the server writes it to a file,
where codeloop's clients find it.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from codeloop.config.files import write_private
from codeloop.config.paths import Paths
from codeloop.kit.processes import is_alive, read_start_time
from codeloop.kit.small_files import open_regular
from codeloop.net.hosts import add_brackets
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.schema.wire import DECODE_ERRORS

DEFAULT_USERNAME = "opencode"
PASSWORD_VARIABLES = ("CODELOOP_SERVER_PASSWORD", "OPENCODE_PASSWORD", "OPENCODE_SERVER_PASSWORD")
USERNAME_VARIABLES = ("CODELOOP_SERVER_USERNAME", "OPENCODE_SERVER_USERNAME")
_LOOPBACK_ADDRESSES = ("127.0.0.1", "::1")
_WILDCARD_ADDRESSES = (str(IPv4Address(0)), str(IPv6Address(0)))


class Credential(Struct, frozen=True):
    """A client's credential for a server. `directory`: the one that the server was started in;
    "": unknown.

    `url`: the address to send the credential to. It may be more specific than the requested one:
    `localhost` has several addresses, and another user's program may listen on one of them.
    """

    url: str
    username: str
    password: str
    directory: str = ""


class RunningServer(Struct, frozen=True):
    """A running server, as stored in its file.

    `started`: when its process started, since a later process may get the same id.
    """

    url: str
    username: str
    password: str
    pid: int
    started: str = ""
    directory: str = ""
    """The directory that the server was started in.
    A server that replaces it is started in the same one.
    """


def find_set_variable(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the name of the first variable that is set and not empty."""
    return next((name for name in names if environment.get(name)), None)


def choose_username(environment: Mapping[str, str]) -> str:
    """Return the user name that the environment sets for servers and clients, or the default."""
    name = find_set_variable(environment, USERNAME_VARIABLES)
    return environment[name] if name else DEFAULT_USERNAME


def publish_credential(paths: Paths, url: str, username: str, password: str) -> Path:
    """Write the credential of this process's server to a file, and return its path. Raises OSError.

    The files of servers that have ended are removed.
    """
    for path in _list_files(paths):
        running_server = _read_server(path)
        if running_server is None or not is_alive(running_server.pid, running_server.started):
            path.unlink(missing_ok=True)
    pid = os.getpid()
    path = _get_file(paths, *_parse_address(url))
    running_server = RunningServer(
        url=url,
        username=username,
        password=password,
        pid=pid,
        started=read_start_time(pid),
        directory=str(Path.cwd()),
    )
    write_private(path, msgspec.json.encode(running_server).decode())
    return path


def withdraw_credential(paths: Paths, url: str, *, of_any: bool = False) -> None:
    """Remove the file that `publish_credential` wrote for a server's address.

    `of_any`: also remove the file that another process wrote for it.
    """
    path = _get_file(paths, *_parse_address(url))
    # A server that was started since may have written the file anew.
    with suppress(OSError):
        running_server = _read_server(path)
        if of_any or (running_server is not None and running_server.pid == os.getpid()):
            path.unlink(missing_ok=True)


def find_credential(paths: Paths, url: str, environment: Mapping[str, str]) -> Credential | None:
    """Return the credential for the server at `url`: from the file of a running server,
    else from the environment.

    A file counts only for its own host and port, while its process lives, and if no other user can
    read it. `localhost`, 127.0.0.1 and ::1 are the same host. None: there is no credential.
    """
    try:
        host, port = _parse_address(url)
    except ValueError:
        return None
    # A running server of this machine speaks HTTP only.
    is_http = urlsplit(url).scheme == "http"
    for candidate in _list_aliases(host) if is_http else ():
        server = _read_running_server(_get_file(paths, candidate, port))
        if server is not None:
            return Credential(
                _make_url(candidate, port), server.username, server.password, server.directory
            )
    name = find_set_variable(environment, PASSWORD_VARIABLES)
    return Credential(url, choose_username(environment), environment[name]) if name else None


def find_successor(paths: Paths, credential: Credential) -> Credential | None:
    """Return the credential for the server that replaces a stopped one;
    None: there is none, or more than one.

    It is the only running server that was started in the same directory.
    """
    running_servers = [
        each
        for each in map(_read_running_server, _list_files(paths))
        if each is not None and each.directory == credential.directory
    ]
    if not credential.directory or len(running_servers) != 1:
        return None
    successor = running_servers[0]
    url = _make_url(*_parse_address(successor.url))
    return Credential(url, successor.username, successor.password, successor.directory)


def _read_running_server(path: Path) -> RunningServer | None:
    """Return the server that a file is about; None if its process has ended,
    or the file can't be trusted.
    """
    running_server = _read_server(path)
    is_running = running_server is not None and is_alive(running_server.pid, running_server.started)
    return running_server if is_running else None


def _parse_address(url: str) -> tuple[str, int]:
    """Return host and port of a URL. Raises ValueError."""
    parts = urlsplit(url)
    port = parts.port
    return parts.hostname or "", (443 if parts.scheme == "https" else 80) if port is None else port


def _list_aliases(host: str) -> tuple[str, ...]:
    """Return the addresses whose files may be of a server that is reached at `host`,
    the likeliest first.
    """
    if host != "localhost" and host not in _LOOPBACK_ADDRESSES:
        return (host,)
    return (
        *((host,) if host in _LOOPBACK_ADDRESSES else ()),
        *(each for each in _LOOPBACK_ADDRESSES if each != host),
        *_WILDCARD_ADDRESSES,
    )


def _make_url(host: str, port: int) -> str:
    # A server that listens on all addresses is reached at a loopback address.
    if host in _WILDCARD_ADDRESSES:
        host = _LOOPBACK_ADDRESSES[_WILDCARD_ADDRESSES.index(host)]
    return f"http://{add_brackets(host)}:{port}"


def _get_folder(paths: Paths) -> Path:
    return paths.state / "server"


def _make_prefix() -> str:
    """Return the prefix of this machine's files,
    since several machines may share a home directory.
    """
    return quote(os.uname().nodename, safe="")


def _get_file(paths: Paths, host: str, port: int) -> Path:
    return _get_folder(paths) / f"{_make_prefix()}@{quote(host, safe='')}-{port}.json"


def _list_files(paths: Paths) -> Iterator[Path]:
    with suppress(OSError):
        names = [entry.name for entry in os.scandir(_get_folder(paths))]
        yield from (
            _get_folder(paths) / name for name in names if name.startswith(f"{_make_prefix()}@")
        )


def _read_server(path: Path) -> RunningServer | None:
    """Read a file of `publish_credential`; None: it is missing or damaged,
    or other users can read or write it.
    """
    try:
        with open_regular(path) as descriptor:
            status = os.fstat(descriptor)
            # Another user could have written the file, to receive the credential,
            # or could know its password.
            if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
                return None
            return msgspec.json.decode(os.read(descriptor, CONFIG_BYTES.value), type=RunningServer)
    except (OSError, *DECODE_ERRORS):
        return None
