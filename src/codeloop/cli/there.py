"""A directory of a running server, reached over HTTP for one command."""

import base64
import mimetypes
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from codeloop.cli.exits import UsageProblem
from codeloop.cli.output import Output
from codeloop.cli.reached import Reached
from codeloop.cli.run import Options
from codeloop.client.http import HttpClient
from codeloop.config.paths import find_paths
from codeloop.config.serving import Credential, credential_for, username_of
from codeloop.schema.limits import CLIENT_FILE
from codeloop.schema.message import Session
from codeloop.schema.operation import PATH_GET
from codeloop.schema.project import PathInfo
from codeloop.schema.prompts import FileInput

CLEAR = "codeloop: The password goes over the network as it is, since the address is http. Better use https."


@asynccontextmanager
async def there(options: Options, terminal: Output | None) -> AsyncGenerator[Reached]:
    """Reach the server of `--attach` and see that it answers; the directory is the flags', else the server's own."""
    del terminal
    client = connected(options.attach or "", options.directory, options.username, options.password)
    try:
        place: PathInfo = await client.call(PATH_GET)
        client = client.at(place.directory)
        notes = (CLEAR,) if client.sends_in_clear else ()
        yield Reached(client, place.directory, lambda session: _of(client, session), _attachment, notes)
    finally:
        await client.close()


def connected(url: str, directory: Path | None, username: str | None, password: str | None) -> HttpClient:
    """Give a client of a server with the credential that is given, else the one that is known for its address.

    A directory that exists here is meant by its absolute path; any other one is the server's. Raises CodeloopError.
    """
    HttpClient(url)  # an address that is none must not be looked up

    def found() -> Credential | None:
        if password is not None:
            return Credential(url, username or username_of(os.environ), password)
        return credential_for(find_paths(os.environ), url, os.environ)

    def said() -> tuple[str, str] | None:
        known = found()
        return None if known is None else (username or known.username, known.password)

    known = found()
    return HttpClient(url if known is None else known.url, _named(directory), said(), said)


def _named(directory: Path | None) -> str | None:
    if directory is None:
        return None
    with suppress(OSError):
        return str(directory.resolve(strict=True))
    return str(directory)


def _of(client: HttpClient, session: Session) -> HttpClient:
    return client if session.directory == client.directory else client.at(session.directory)


def _attachment(path: Path) -> FileInput:
    """Give a file with its content: the server may be another machine. Text of any kind is sent as such."""
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
    return FileInput(mime=mime, url=f"data:{mime};base64,{base64.b64encode(data).decode()}", filename=path.name)
