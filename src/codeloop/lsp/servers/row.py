"""A row of the table of language servers in `servers.json`."""

from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop.schema.config import ProgramSandboxConfig
from codeloop.schema.wire import JSON

_TABLE = Path(__file__).with_name("servers.json")


class ServerRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A server. `languages`: the language id by extension (`.py`) or name of file; `roots`: what its root has in it.

    `needs`: it serves only where one of these is. `commands`: the first one that is installed is used. `packages`: for
    programs whose older versions lack the server, the npm package with the least major version (`typescript@7`).
    `stands_for`: the kind of server, of which only one serves a file. `runs_project_code`: it executes code of the
    project, which therefore must be trusted. `initialization`: `{npm:FOLDER:FILE}` in it is the nearest such folder
    of an npm package. `install`: the package manager, then the packages. `settle`, `repeats`, `pull_method`:
    see ServerSetup. `warnings`: they are reported like errors. `shared`: one process serves all roots of a project,
    which are added as workspace folders, or need not be; "": each root has its own process. `sandbox`: as configured.
    `is_linter`: it only reports errors, and knows no definitions.
    """

    name: str
    languages: dict[str, str]
    commands: list[list[str]]
    roots: list[str] = []
    needs: list[str] = []
    initialization: Any = None
    settings: JSON = {}
    stands_for: str = ""
    packages: dict[str, str] = {}
    runs_project_code: bool = False
    install: list[str] = []
    environment: dict[str, str] = {}
    settle: float = 0.3
    repeats: bool = False
    pull_method: Literal["", "tsserver"] = ""
    warnings: bool = False
    shared: Literal["", "folders", "any"] = ""
    sandbox: bool | ProgramSandboxConfig = True
    is_linter: bool = False

    def language(self, path: Path) -> str | None:
        """Return the id of the language of a file; None: it does not serve this file."""
        return self.languages.get(path.name) or self.languages.get(path.suffix)


def load_rows() -> tuple[ServerRow, ...]:
    """Return the table."""
    return tuple(msgspec.json.decode(_TABLE.read_bytes(), type=list[ServerRow]))
