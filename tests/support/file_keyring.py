"""A backend of the package `keyring`: keys in the file `$FILE_KEYRING`, locked while
`$FILE_KEYRING.lock` exists.
"""

import json
import os
from pathlib import Path
from typing import Any

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked


class FileKeyring(KeyringBackend):
    """The backend that `PYTHON_KEYRING_BACKEND` selects in tests."""

    priority: Any = 1

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write({**self._read(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        kept = self._read()
        del kept[f"{service}/{username}"]
        self._write(kept)

    @property
    def _path(self) -> Path:
        return Path(os.environ["FILE_KEYRING"])

    def _read(self) -> dict[str, str]:
        if self._path.with_name(self._path.name + ".lock").exists():
            raise KeyringLocked("the collection is locked")
        return json.loads(self._path.read_text()) if self._path.exists() else {}

    def _write(self, keys: dict[str, str]) -> None:
        self._path.write_text(json.dumps(keys))
