"""An MCP server's entry in a configuration file: put in, taken out, with everything else left as it is."""

import os
from pathlib import Path

from codeloop.config.edit_file import NotPlain, edited
from codeloop.config.files import read_text, reason, write_private
from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.config.sources import OWN_FILES
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.schema.wire import JSON


def entry_file(paths: Paths, place: ProjectRoot | None) -> Path:
    """Return our file for entries: the project's, or for None the person's own; of two the one that wins."""
    folder = paths.config if place is None else place.root
    there = [folder / name for name in OWN_FILES if os.path.lexists(folder / name)]
    return there[-1] if there else folder / OWN_FILES[0]


def write_entry(file: Path, name: str, entry: JSON | None) -> None:
    """Set the entry `mcp.<name>` of a file; None takes it out. Raises CodeloopError, and nothing is changed."""
    try:
        text = edited(read_text(file, CONFIG_BYTES.value), {"mcp": {name: entry}})
        if file.parent.is_dir() and file.exists():
            mode = file.stat().st_mode & 0o777
            write_private(file, text)
            file.chmod(mode)
        else:
            write_private(file, text)
    except NotPlain as error:
        raise CodeloopError(f"{file} is not changed: {error}. Edit `mcp` in it by hand.") from error
    except OSError as error:
        raise CodeloopError(f"{file} can't be written: {reason(error)}. Nothing was changed.") from error
    except ValueError as error:
        raise CodeloopError(f"The entry can't be stored in {file}: {error}.") from error
