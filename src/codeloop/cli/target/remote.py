"""A directory of a running server, reached over HTTP for one command."""

import base64
import mimetypes
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.output.streams import Output
from codeloop.cli.run.options import Options
from codeloop.cli.target.target import Reached
from codeloop.client.http import HttpClient
from codeloop.config.paths import find_paths
from codeloop.config.server_credential import Credential, credential_for, successor_of, username_of
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import CLIENT_FILE
from codeloop.schema.message import Session
from codeloop.schema.operation import CONFIG_WARNINGS, PATH_GET, NoArguments

CLEAR = "codeloop: The password goes over the network as it is, since the address is http. Better use https."


@asynccontextmanager
async def there(options: Options, terminal: Output | None) -> AsyncGenerator[Reached]:
    """Reach the server of `--attach` and see that it answers; the directory is the flags', else the server's own."""
    del terminal
    client = connected(options.attach or "", options.directory, options.username, options.password)
    try:
        place = await client.call(PATH_GET, NoArguments())
        client = client.at(place.directory)
        notes = (*((CLEAR,) if client.sends_in_clear else ()), *await _warnings(client))
        yield Reached(client, place.directory, lambda session: _of(client, session), _attachment, notes, client.link)
    finally:
        await client.close()


async def _warnings(client: HttpClient) -> tuple[str, ...]:
    """Return what the server says of its configuration; nothing when it is of another version."""
    try:
        lines = await client.call(CONFIG_WARNINGS, NoArguments())
    except OperationError:
        return ()
    return tuple(f"codeloop: {line}" for line in lines)


def connected(url: str, directory: Path | None, username: str | None, password: str | None) -> HttpClient:
    """Return a client of a server with the credential that is given, else the one that is known for its address.

    A directory that exists here is meant by its absolute path; any other one is the server's. Raises CodeloopError.
    """
    HttpClient(url)  # an address that is none must not be looked up

    if password is not None:
        return HttpClient(url, _named(directory), (username or username_of(os.environ), password))
    paths = find_paths(os.environ)
    first = credential_for(paths, url, os.environ)

    def said(known: Credential | None) -> tuple[str, tuple[str, str]] | None:
        return None if known is None else (known.url, (username or known.username, known.password))

    def renew() -> tuple[str, tuple[str, str]] | None:
        known = credential_for(paths, url, os.environ)
        if known is not None and known.directory:  # it runs where it was
            return said(known)
        return said((successor_of(paths, first) if first is not None else None) or known)

    where, credential = said(first) or (url, None)
    return HttpClient(where, _named(directory), credential, renew)


def _named(directory: Path | None) -> str | None:
    if directory is None:
        return None
    with suppress(OSError):
        return str(directory.resolve(strict=True))
    return str(directory)


def _of(client: HttpClient, session: Session) -> HttpClient:
    return client if session.directory == client.directory else client.at(session.directory)


def _attachment(path: Path) -> FilePartInput:
    """Return a file with its content: the server may be another machine. Text of any kind is sent as such."""
    try:
        with path.expanduser().open("rb") as file:
            data = file.read(CLIENT_FILE.value + 1)
    except OSError as error:
        raise UsageProblem(f"The file {path} of --file can't be read: {error.strerror}. Correct its name.") from None
    if len(data) > CLIENT_FILE.value:
        raise UsageProblem(f"The file {path} of --file is larger than {CLIENT_FILE.value} bytes. Send a smaller one.")
    mime = mimetypes.guess_type(path.name)[0] or "text/plain"
    if not mime.startswith("image/") and mime != "application/pdf":
        if b"\0" in data:
            raise UsageProblem(f"The file {path} of --file is neither text, an image nor a PDF.")
        mime = "text/plain"
    return FilePartInput(mime=mime, url=f"data:{mime};base64,{base64.b64encode(data).decode()}", filename=path.name)
