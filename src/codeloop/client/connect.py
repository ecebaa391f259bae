"""Connects to a server with the credential that is known for it,
even after the server was restarted.
"""

import os
from contextlib import suppress
from pathlib import Path

from codeloop.client.http import HttpClient
from codeloop.config.paths import find_paths
from codeloop.config.server_credential import (
    Credential,
    choose_username,
    find_credential,
    find_successor,
)


def connect_to_server(
    url: str, directory: Path | None, username: str | None, password: str | None
) -> HttpClient:
    """Return a client of a server with the given credential, else the one known for its address.

    A directory that exists on this machine is sent as its absolute path, any other as it is.
    Raises CodeloopError.
    """
    # Made only to refuse an invalid address before a credential is looked up.
    HttpClient(url)
    if password is not None:
        return HttpClient(
            url, _name_directory(directory), (username or choose_username(os.environ), password)
        )
    paths = find_paths(os.environ)
    known_credential = find_credential(paths, url, os.environ)

    def choose_user(credential: Credential) -> tuple[str, str]:
        return username or credential.username, credential.password

    def renew() -> tuple[str, tuple[str, str]] | None:
        credential = find_credential(paths, url, os.environ)
        # Only the credential of a running server has a directory.
        # Without one, look for the server that took its place.
        if known_credential is not None and not (credential is not None and credential.directory):
            credential = find_successor(paths, known_credential) or credential
        return None if credential is None else (credential.url, choose_user(credential))

    if known_credential is None:
        return HttpClient(url, _name_directory(directory), None, renew)
    return HttpClient(
        known_credential.url, _name_directory(directory), choose_user(known_credential), renew
    )


def _name_directory(directory: Path | None) -> str | None:
    """Return the absolute path of a directory of this machine;
    the path as given if it exists on the server only.
    """
    if directory is None:
        return None
    with suppress(OSError):
        return str(directory.resolve(strict=True))
    return str(directory)
