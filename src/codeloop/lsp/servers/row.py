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

    `needs`: it serves only where one of these is. `commands`: the first that is found counts. `packages`: for programs
    that don't hold the server in older versions, the npm package with the least major version (`typescript@7`).
    `stands_for`: of those of one kind only one serves a file. `runs_project_code`: it executes what is in the project,
    so that wants trust. `initialization`: `{npm:FOLDER:FILE}` in it is the nearest such folder of an npm package.
    `install`: with what and which packages; `by`: what the user has to do.
    `settle`, `repeats`, `asked`: see ServerSetup.
    `warnings`: they are told like errors. `shared`: one process serves all roots of a project: it is told of them as
    folders, or needs none; else each root has its own. `sandbox`: as configured.
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
    asked: Literal["", "tsserver"] = ""
    warnings: bool = False
    shared: Literal["", "folders", "any"] = ""
    sandbox: bool | ProgramSandboxConfig = True

    def language(self, path: Path) -> str | None:
        """Return the id of the language of a file; None: it does not serve this file."""
        return self.languages.get(path.name) or self.languages.get(path.suffix)


def load_rows() -> tuple[ServerRow, ...]:
    """Return the table."""
    return tuple(msgspec.json.decode(_TABLE.read_bytes(), type=list[ServerRow]))
