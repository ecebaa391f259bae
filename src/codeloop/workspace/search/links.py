"""Finds the symbolic links below a folder, of which ripgrep tells nothing, and where they lead."""

import asyncio
import os
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from codeloop.kit.paths import join_relative
from codeloop.schema.limits import SEARCH_LINKS
from codeloop.workspace.files.folder_listing import RULES_BYTES, read_ignore_rules
from codeloop.workspace.git.ignore_patterns import is_ignored, list_user_excludes, read_ignore_file
from codeloop.workspace.search.file_filter import FileFilter, quote_names
from codeloop.workspace.search.grep_query import SearchFailed
from codeloop.workspace.workspace import Workspace

_NOTED_LINKS = 3


class FoundLink(Struct, frozen=True):
    """A link. `path`: relative to the folder; `target`: as it is written in the link;
    `real`: where it leads.
    """

    path: str
    target: str
    real: Path
    is_inside: bool
    """Whether it leads to something in the project."""

    @property
    def is_folder(self) -> bool:
        """Whether it leads to a folder."""
        return self.real.is_dir()


async def find_links(workspace: Workspace, folder: Path) -> list[FoundLink]:
    """Return the links below a folder that git does not ignore, those nearest to it first.

    Of a large tree only SEARCH_LINKS entries are looked at.
    """
    return await asyncio.to_thread(_find_links, workspace, folder)


def _find_links(workspace: Workspace, folder: Path) -> list[FoundLink]:
    top = workspace.root if folder.is_relative_to(workspace.root) else folder
    start = "" if folder == top else str(folder.relative_to(top))
    rules, is_all_ignored = read_ignore_rules(top, start, list_user_excludes(workspace.environment))
    if is_all_ignored:
        return []
    links: list[FoundLink] = []
    remaining = SEARCH_LINKS.value
    waiting = deque([(start, rules)])
    while waiting and remaining > 0:
        path, rules = waiting.popleft()
        with suppress(OSError), os.scandir(top / path) as scanned:
            entries = list(scanned)
            remaining -= len(entries)
            if path != start and any(entry.name == ".gitignore" for entry in entries):
                rules = (read_ignore_file(top / path / ".gitignore", path, RULES_BYTES), *rules)
            for entry in entries:
                relative = join_relative(path, entry.name)
                is_link, is_folder = entry.is_symlink(), entry.is_dir(follow_symlinks=False)
                if not is_link and (not is_folder or entry.name == ".git"):
                    continue
                if is_ignored(rules, relative, entry.name, is_folder=is_folder):
                    continue
                if is_link:
                    links.append(
                        _describe(workspace, top / relative, relative[len(start) :].lstrip("/"))
                    )
                else:
                    waiting.append((relative, rules))
    return links


def list_links_to_follow(
    folder: Path, links: Iterable[FoundLink], pattern: str | None
) -> list[str]:
    """Return the links to what a search of the folder for files that match a glob (all: None) does
    not reach without them, and that lies in the project.
    """
    real = Path(os.path.realpath(folder))
    try:
        file_filter = FileFilter.parse(pattern and quote_names(pattern, folder))
    except SearchFailed:
        # The search itself says what is wrong with the pattern.
        return []
    return [
        link.path
        for link in links
        # A link to a folder above the searched one would lead back to it.
        if link.is_inside and not real.is_relative_to(link.real) and link.real.exists()
        # What lies below the folder is found there, unless only the path of the link passes.
        if not link.real.is_relative_to(real)
        or file_filter.needs_link(
            link.path, str(link.real.relative_to(real)), is_folder=link.is_folder
        )
    ]


def note_links_outside(links: Iterable[FoundLink]) -> str:
    """Return a note on the links that were not followed, since they lead out of the project;
    "": there are none.
    """
    outside = [link.path for link in links if not link.is_inside]
    if not outside:
        return ""
    names = ", ".join(outside[:_NOTED_LINKS]) + (", ..." if len(outside) > _NOTED_LINKS else "")
    if len(outside) == 1:
        return f"the link {names} leads out of the project and was not followed"
    return f"{len(outside)} links lead out of the project and were not followed: {names}"


def _describe(workspace: Workspace, path: Path, relative: str) -> FoundLink:
    real = Path(os.path.realpath(path))
    return FoundLink(relative, os.fspath(path.readlink()), real, workspace.contains(real))
