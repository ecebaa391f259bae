"""Names the extras of codeloop, which are in the other distribution of this repository, of the
same version.

The version of a commit has a local part (`0.1.0+g1a2b3c4d5`), which no public package index takes.
So nothing that somebody else calls so there is installed.
"""

import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

EXTRAS = {"automation": "", "postgres": "[postgres]", "ray": "[ray]"}


class AutomationExtras(MetadataHookInterface):
    """Adds what `dynamic` announces in `pyproject.toml`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the extras to the metadata."""
        file = Path(self.root, "src", "codeloop", "kit", "version.py")
        version: str = runpy.run_path(str(file))["VERSION"]
        metadata["optional-dependencies"] = {
            name: [f"codeloop-automation{extras}=={version}"] for name, extras in EXTRAS.items()
        }
