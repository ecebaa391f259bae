"""A directory of a running server, reached over HTTP."""

import base64
import mimetypes
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from codeloop.cli.options import Options
from codeloop.cli.target.target import AskTrust
from codeloop.client.http import HttpClient
from codeloop.client.target import Target
from codeloop.config.paths import find_paths
from codeloop.config.server_credential import Credential, credential_for, successor_of, username_of
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.errors import OperationError, UsageProblem
from codeloop.schema.limits import CLIENT_FILE
from codeloop.schema.message import Session
from codeloop.schema.operation import CONFIG_WARNINGS, PATH_GET, NoArguments

CLEAR = "codeloop: The password is sent unencrypted, because the address is http. Use https."


@asynccontextmanager
async def open_remote(options: Options, _ask_trust: AskTrust | None = None) -> AsyncGenerator[Target]:
    """Connect to the server of `--attach`; the directory is that of `--dir`, else the server's own."""
    client = connected(options.attach or "", options.directory, options.username, options.password)
    try:
        place = await client.call(PATH_GET, NoArguments())
        client = client.at(place.directory)
        notes = [CLEAR] if client.sends_in_clear else []
        with suppress(OperationError):  # a server of another version
            notes += [f"codeloop: {line}" for line in await client.call(CONFIG_WARNINGS, NoArguments())]

        def client_of(session: Session) -> HttpClient:
            return client if session.directory == client.directory else client.at(session.directory)

        yield Target(client, place.directory, client_of, _attachment, tuple(notes), client.link)
    finally:
        await client.close()


def connected(url: str, directory: Path | None, username: str | None, password: str | None) -> HttpClient:
    """Return a client of a server with the given credential, else the one known for its address.

    A directory that exists on this machine is sent as its absolute path, any other as it is. Raises CodeloopError.
    """
    HttpClient(url)  # refuses an invalid address before a credential is looked up

    if password is not None:
        return HttpClient(url, _named(directory), (username or username_of(os.environ), password))
    paths = find_paths(os.environ)
    first = credential_for(paths, url, os.environ)

    def usable(known: Credential | None) -> tuple[str, tuple[str, str]] | None:
        return None if known is None else (known.url, (username or known.username, known.password))

    def renew() -> tuple[str, tuple[str, str]] | None:
        known = credential_for(paths, url, os.environ)
        if known is not None and known.directory:  # the server still runs there
            return usable(known)
        return usable((successor_of(paths, first) if first is not None else None) or known)

    where, credential = usable(first) or (url, None)
    return HttpClient(where, _named(directory), credential, renew)


def _named(directory: Path | None) -> str | None:
    if directory is None:
        return None
    with suppress(OSError):
        return str(directory.resolve(strict=True))
    return str(directory)


def _attachment(path: Path) -> FilePartInput:
    """Return a file with its content, because the server may be another machine. Text of any kind is sent as text."""
    try:
        with path.expanduser().open("rb") as file:
            data = file.read(CLIENT_FILE.value + 1)
    except OSError as error:
        raise UsageProblem(f"The file {path} of --file can't be read: {error.strerror}. Correct the name.") from None
    if len(data) > CLIENT_FILE.value:
        raise UsageProblem(f"The file {path} of --file is larger than {CLIENT_FILE.value} bytes. Choose a smaller one.")
    mime = mimetypes.guess_type(path.name)[0] or "text/plain"
    if not mime.startswith("image/") and mime != "application/pdf":
        if b"\0" in data:
            raise UsageProblem(f"The file {path} of --file is not text, an image or a PDF.")
        mime = "text/plain"
    return FilePartInput(mime=mime, url=f"data:{mime};base64,{base64.b64encode(data).decode()}", filename=path.name)
