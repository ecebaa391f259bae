"""Filters the files of a search by a glob."""

import os
import re
from pathlib import Path

from msgspec import Struct

from codeloop.kit.glob import compile_folders, compile_glob, has_wildcard, quote_brackets
from codeloop.schema.limits import SEARCH_PATTERN
from codeloop.workspace.search.grep_query import SearchFailed

# The name of the file type that a filter defines for ripgrep.
_TYPE_NAME = "codeloop"


def quote_names(pattern: str, root: Path) -> str:
    """Return a glob whose first names stand for themselves where they exist below
    `root` as they are written.

    Folders of some frameworks are called `[lang]` or `{id}`.
    """
    before = re.match(r"!?(?:\./)?/*", pattern)
    start = before.end() if before is not None else 0
    names, folder = pattern[start:].split("/"), root
    for index, name in enumerate(names):
        if not has_wildcard(name):
            folder /= name
            continue
        if quote_brackets(name) == name or not os.path.lexists(folder / name):
            break
        names[index], folder = quote_brackets(name), folder / name
    return pattern[:start] + "/".join(names)


class FileFilter(Struct, frozen=True):
    """Filters files by a glob: with a slash it matches the path below the root,
    else the name alone.

    ripgrep's own --glob would also show ignored files. So names are filtered by a file type that
    `options` define on its command line, and whole paths, of those that it prints, by
    `path_pattern`: which pass, or with `is_inclusive` false, which do not; None: all pass.
    """

    options: tuple[str, ...]
    path_pattern: re.Pattern[str] | None = None
    is_inclusive: bool = True
    name_pattern: re.Pattern[str] | None = None
    """What `options` filter names by; None: nothing, or a path pattern says more."""
    glob: str = ""
    """The glob of `path_pattern`."""

    @staticmethod
    def parse(pattern: str | None) -> "FileFilter":
        """Parse a glob; None accepts every file. Raises SearchFailed for one that is not valid."""
        if not pattern:
            return FileFilter(())
        if len(pattern) > SEARCH_PATTERN.value:
            raise SearchFailed(
                f"it has {len(pattern)} characters, and at most {SEARCH_PATTERN.value} are read"
            )
        is_inclusive = not pattern.startswith("!")
        glob = pattern.removeprefix("!").removeprefix("./").lstrip("/")
        is_rooted = pattern.startswith(("/", "!/"))
        without_stars = glob.removeprefix("**/")
        if without_stars and "/" not in without_stars and not is_rooted:
            # `**/*.py` means the same as `*.py`, which ripgrep filters by itself.
            glob = without_stars
        try:
            compiled = compile_glob(glob)
        except ValueError as error:
            raise SearchFailed(str(error)) from error
        if "/" not in glob and not is_rooted:
            options = (
                f"--type-add={_TYPE_NAME}:{glob}",
                f"--type={_TYPE_NAME}" if is_inclusive else f"--type-not={_TYPE_NAME}",
            )
            # `*` names every file, of which `!*` leaves none; `!` alone names no file.
            is_filtering = bool(glob.strip("*") or (glob and not is_inclusive))
            return (
                FileFilter(options, None, is_inclusive, compiled)
                if is_filtering
                else FileFilter(())
            )
        # ripgrep can't filter by the path, but by the name at its end, which leaves fewer paths to
        # match here. Of `src/{a,b/c}.py` the name is not known: its braces do not match.
        name = glob.rpartition("/")[2]
        can_narrow = is_inclusive and bool(name.strip("*")) and name.count("{") == name.count("}")
        return FileFilter(
            (f"--type-add={_TYPE_NAME}:{name}", f"--type={_TYPE_NAME}") if can_narrow else (),
            compiled,
            is_inclusive,
            glob=glob,
        )

    def needs_link(self, link: str, target: str, *, is_folder: bool) -> bool:
        """Return whether a file passes by way of a link alone, not by its own path `target`.

        Both are relative, to the file or to a folder.
        """
        if not is_folder:
            return self.accepts_unfiltered(link) and not self.accepts_unfiltered(target)
        if self.path_pattern is None or not self.is_inclusive:
            return False
        folders = compile_folders(self.glob)
        return bool(folders.fullmatch(link)) and not folders.fullmatch(target)

    def accepts_link(self, path: Path, relative: str) -> bool:
        """Return whether a link passes, which ripgrep is given by name: so `options`
        filter only what is below it.

        Folders pass: what lies in them is filtered.
        """
        return path.is_dir() or self.accepts_unfiltered(relative)

    def accepts_unfiltered(self, relative: str) -> bool:
        """Return whether a relative path passes that did not come from ripgrep
        with these options.
        """
        if self.name_pattern is not None:
            is_matched = self.name_pattern.fullmatch(relative.rpartition("/")[2]) is not None
            return is_matched == self.is_inclusive
        return self.accepts(relative)

    def accepts(self, relative: str) -> bool:
        """Return whether a relative path that ripgrep printed, with these options, passes."""
        return (
            self.path_pattern is None
            or (self.path_pattern.fullmatch(relative) is not None) == self.is_inclusive
        )
