"""Connects to a server with its known credential, and packs files sent with prompts."""

import base64
import mimetypes
import os
from contextlib import suppress
from pathlib import Path

from codeloop.client.http import HttpClient
from codeloop.config.paths import find_paths
from codeloop.config.server_credential import Credential, choose_username, find_credential, find_successor
from codeloop.kit.small_files import expand_user_path
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.errors import UsageProblem
from codeloop.schema.limits import CLIENT_FILE


def connect(url: str, directory: Path | None, username: str | None, password: str | None) -> HttpClient:
    """Return a client of a server with the given credential, else the one known for its address.

    A directory that exists on this machine is sent as its absolute path, any other as it is. Raises CodeloopError.
    """
    HttpClient(url)  # refuses an invalid address before a credential is looked up

    if password is not None:
        return HttpClient(url, _name_directory(directory), (username or choose_username(os.environ), password))
    paths = find_paths(os.environ)
    first = find_credential(paths, url, os.environ)

    def address_of(credential: Credential | None) -> tuple[str, tuple[str, str]] | None:
        return None if credential is None else (credential.url, (username or credential.username, credential.password))

    def renew() -> tuple[str, tuple[str, str]] | None:
        credential = find_credential(paths, url, os.environ)
        if credential is not None and credential.directory:  # the server still runs there
            return address_of(credential)
        return address_of((find_successor(paths, first) if first is not None else None) or credential)

    where, credential = address_of(first) or (url, None)
    return HttpClient(where, _name_directory(directory), credential, renew)


def _name_directory(directory: Path | None) -> str | None:
    if directory is None:
        return None
    with suppress(OSError):
        return str(directory.resolve(strict=True))
    return str(directory)


def pack_file(path: Path) -> FilePartInput:
    """Return a file with its content, because the server may be another machine. Text of any kind is sent as text."""
    try:
        with expand_user_path(path).open("rb") as file:
            data = file.read(CLIENT_FILE.value + 1)
    except OSError as error:
        raise UsageProblem(f"The file {path} can't be read: {error.strerror}. Correct the name.") from None
    if len(data) > CLIENT_FILE.value:
        raise UsageProblem(f"The file {path} is larger than {CLIENT_FILE.value} bytes. Choose a smaller one.")
    mime = mimetypes.guess_type(path.name)[0] or "text/plain"
    if not mime.startswith("image/") and mime != "application/pdf":
        if b"\0" in data:
            raise UsageProblem(f"The file {path} is not text, an image or a PDF.")
        mime = "text/plain"
    return FilePartInput(mime=mime, url=f"data:{mime};base64,{base64.b64encode(data).decode()}", filename=path.name)
