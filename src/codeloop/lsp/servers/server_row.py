"""A row of the table of language servers in `servers.json`."""

from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop.schema.config import ProgramSandboxConfig
from codeloop.schema.installation import check_package_file
from codeloop.schema.wire import JSON

_TABLE = Path(__file__).with_name("servers.json")


class ServerRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A row: a language server, the files that it serves, and how it is run.

    - `languages`: the language id by extension (`.py`) or file name; `roots`: files that mark a
      project root, by name or by an ending such as `.sln`; `needs`: the server is only used where
      one of these files exists
    - `stands_for`: the kind of server, of which only one serves a file; `is_linter`: it only
      reports errors, and knows no definitions; `warnings`: they are reported like errors
    - `commands`: the first that is installed is used; `install`: the package manager, then the
      packages; `packages`: for programs whose older versions lack the server, the npm package with
      the lowest major version (`typescript@7`)
    - `runs_project_code`: it executes code of the project, which must be trusted;
      `sandbox`: as configured
    - `shared`: one process serves all roots of a project, which are added as workspace folders
      (`folders`) or need not be (`any`); "": each root has its own process
    - `settings`: what the server is told when it asks; `answers`: the user's `initialization`, over
      them. A text `{python}` in `settings` or `initialization` is a place of the project's
      environment (`environments.py`)
    - `initialization`: `{npm:FOLDER:FILE}` in it is the nearest such folder of an npm package;
      `settle`, `repeats` and
      `pull_method`: see `settle_seconds`, `repeats_reports` and `pull_method` of
      `ServerSetup` (`client/client.py`)
    """

    name: str
    languages: dict[str, str]
    commands: list[list[str]]
    roots: list[str] = []
    needs: list[str] = []
    initialization: Any = None
    settings: JSON = {}
    answers: JSON = {}
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

    def find_language(self, path: Path) -> str | None:
        """Return the id of the language of a file; None: it does not serve this file."""
        return self.languages.get(path.name) or self.languages.get(path.suffix)


def load_server_rows() -> tuple[ServerRow, ...]:
    """Load the rows of the table."""
    return tuple(msgspec.json.decode(check_package_file(_TABLE).read_bytes(), type=list[ServerRow]))
