"""Adds the file `version.txt` to each wheel and source archive,
since neither has a git folder to read it from.
"""

import runpy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class VersionFile(BuildHookInterface[Any]):
    """Writes the file outside of the sources, which a build leaves as they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to what is built. `version`: of the kind of wheel;
        an editable one has the git folder.
        """
        package = Path(self.root, "src", "codeloop")
        reader = runpy.run_path(str(package / "kit" / "version.py"))
        name: str = reader["BUILT_FILE_NAME"]
        # An unpacked source archive has the file already.
        if version == "editable" or (package / name).exists():
            return
        # The folder goes with this object, after the build.
        self.folder = TemporaryDirectory(prefix="codeloop-build-")
        file = Path(self.folder.name, name)
        file.write_text(f"{reader['VERSION']}\n", encoding="utf-8")
        target = "src/codeloop" if self.target_name == "sdist" else "codeloop"
        build_data["force_include"][str(file)] = f"{target}/{name}"
