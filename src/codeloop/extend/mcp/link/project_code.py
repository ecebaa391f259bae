"""What a server outside of any sandbox may load of a project, which the agent edits: asked about when it changed."""

import asyncio
import os
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from codeloop.extend.mcp.known.approvals import Approvals
from codeloop.extend.mcp.known.definition import LocalDefinition, ServerDefinition
from codeloop.extend.mcp.link.clients import ServerPlace
from codeloop.kit.small_files import from_home
from codeloop.schema.limits import MCP_CODE

_CHANGED = (
    "It runs without a sandbox, as you, and may load any file of this project. "
    "These have changed since it was started last with your leave.\n"
)


class StartConsent:
    """What has been agreed to of a server, and is to be before it is started."""

    def __init__(self, definition: ServerDefinition, place: ServerPlace, approvals: Approvals) -> None:
        self.place = place
        self._definition = definition
        self._approvals = approvals
        self._code = ""

    async def look(self) -> str:
        """Look at what would be started; return how it differs from what was agreed to, "" when it does not."""
        self._code = await _look_at_code(self._definition, self.place)
        has_other = bool(self._code) and not self._approvals.has_code(self._definition, self._code)
        return self._approvals.change(self._definition) + _CHANGED * has_other

    def agree(self) -> None:
        """Remember what was looked at last as agreed to: it has been started."""
        self._approvals.agree(self._definition, self._code)


async def _look_at_code(definition: ServerDefinition, place: ServerPlace) -> str:
    """Return a value that is another one after any change of the project's files; "" where no such code is loaded.

    What a program imports can't be known before it runs, so all of the project counts.
    """
    how = definition.how
    if not isinstance(how, LocalDefinition) or not (definition.scope or _leads_into_project(how, place)):
        return ""
    if how.is_boxed is not False:
        await place.boxes.probe()
    if place.boxes.is_used(how.is_boxed):
        return ""
    return await asyncio.to_thread(_look_at_files, place.project.root)


def _leads_into_project(how: LocalDefinition, place: ServerPlace) -> bool:
    project = place.project
    roots = {str(project.root), os.path.realpath(project.root)}
    folder = os.path.realpath(project.directory / from_home(how.cwd)) if how.cwd else "/"
    is_inside = any(f"{folder}/".startswith(f"{root}/") for root in roots)
    return is_inside or any(word.startswith(".") or any(root in word for root in roots) for word in how.command)


def _look_at_files(root: Path) -> str:
    """Return a hash of how all files of a project lie on the disk; of too many one that is never the same."""
    rows: list[str] = []
    for top, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in islice(names, MCP_CODE.value):
            try:
                status = os.lstat(f"{top}/{name}")
            except OSError:
                continue
            rows.append(f"{top}/{name}\0{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}")
        if len(rows) >= MCP_CODE.value:
            return os.urandom(16).hex()
    return blake2b(os.fsencode("\n".join(sorted(rows))), digest_size=16).hexdigest()
