"""The browser UI: files that `make web` builds from the folder `web/` of the repository,
and where they are.
"""

from pathlib import Path

STATIC_FOLDER = Path(__file__).parent / "static"
"""The folder that a server offers: `index.html` at `/`, its other files below `/web/`."""
