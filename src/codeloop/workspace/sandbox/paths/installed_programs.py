"""Finds what was installed with a folder of programs: an environment, a prefix,
the targets of its links.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from codeloop.kit.small_files import read_start
from codeloop.workspace.sandbox.paths.home_paths import (
    CLONED_TOOLS,
    INSTALL_MARKERS,
    PROGRAM_FOLDER_NAMES,
)
from codeloop.workspace.sandbox.paths.linked_paths import LinkTracer, exists, resolve_links

_SYSTEM_PREFIXES = ("/usr/", "/bin/", "/sbin/", "/etc/", "/lib/")
# The most links of a folder of programs that are followed to their targets.
_MAX_LINKS = 500
# The most bytes of a `pyvenv.cfg` that are read; usual ones have some hundred.
_SETTINGS_BYTES = 64 * 1024


def list_installed_with(
    folder: Path, home: Path, *, roots: Sequence[Path] = (), follow_links: bool = True
) -> Iterator[Path]:
    """Yield a folder of programs and what was installed with it: an environment, a prefix,
    the targets of its links.
    """
    if not folder.is_dir():
        return
    yield folder
    top = folder.parent
    if folder.name in PROGRAM_FOLDER_NAMES and not _may_hold_work(top, home):
        markers = [name for name in INSTALL_MARKERS if exists(top / name)]
        if not exists(top / ".git"):
            if markers:
                yield top
        else:
            # Only known entries, because the rest of a repository may be the user's private work.
            markers += [
                name
                for marker, names in CLONED_TOOLS
                if exists(top / marker)
                for name in names.split()
            ]
            yield from (top / name for name in markers if exists(top / name))
        base = find_base_interpreter(top / "pyvenv.cfg") if "pyvenv.cfg" in markers else None
        if base is not None and not exists(base.parent / "pyvenv.cfg"):
            yield from list_installed_with(base, home, follow_links=False)
    if folder.name in PROGRAM_FOLDER_NAMES:
        modules = (top / name for name in ("lib/node_modules", "../node_modules"))
        yield from (path for path in modules if exists(path))
    if folder.name == ".bin":
        yield top
    targets = _list_link_targets(folder, roots) if follow_links else []
    for target in targets:
        yield target
        parts = target.parts
        if "node_modules" in parts:
            yield Path(*parts[: parts.index("node_modules") + 1])
        elif target.parent.name in PROGRAM_FOLDER_NAMES and target.parent != folder:
            yield from list_installed_with(target.parent, home, follow_links=False)


def _may_hold_work(folder: Path, home: Path) -> bool:
    """Return whether a folder may hold more than installed files: the home, its parents,
    `~/.local`.
    """
    path = resolve_links(folder)
    return (
        home.is_relative_to(path)
        or path in {home / ".local", home / ".cargo"}
        or len(path.parts) < 3
    )


def find_base_interpreter(configuration: Path) -> Path | None:
    """Return the folder of programs that a virtual environment was made from,
    by its `pyvenv.cfg`.
    """
    try:
        lines = os.fsdecode(read_start(configuration, _SETTINGS_BYTES)).splitlines()
    except OSError:
        return None
    # The line `home = /usr/bin`.
    values = [
        line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"
    ]
    return Path(values[0]) if values and values[0].startswith("/") else None


def _list_link_targets(folder: Path, roots: Sequence[Path]) -> list[Path]:
    """Return the files in other folders that links in a folder lead to,
    without those that lead out of the project.
    """
    leading_out: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            links = [Path(entry.path) for entry in entries if entry.is_symlink()]
    except OSError:
        return leading_out
    is_of_system = f"{folder}/".startswith(_SYSTEM_PREFIXES)
    for link in links:
        target = str(link.readlink())
        # Most links stay in the folder, or lead to a folder of the system, which is visible anyway.
        if (
            "/" in target
            and not target.startswith((*_SYSTEM_PREFIXES, f"{folder}/"))
            and (target[0] == "/" or not is_of_system)
        ):
            leading_out.append(link)
    tracer = LinkTracer((), roots)
    targets = (tracer.resolve(link) for link in leading_out[:_MAX_LINKS])
    return [path for path in targets if path is not None and path.is_file()]
