"""Files, searches and version control, as a client asks for them.

OpenCode's API has some things twice, under names of its own: `File` at /file/status and
`VcsFileStatus` at /vcs/status are both a changed file; `FileNode` (/file) and `FileSystemEntry`
(the preview's /api/fs) are both an entry of a folder.
"""

from typing import Annotated, Any, Literal

import msgspec

from codeloop.schema.api.project import LocationInfo
from codeloop.schema.limits import FILES_NAMES, VCS_CONTEXT
from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.wire import Wire

FileChange = Literal["added", "deleted", "modified"]


class FileQuery(Wire):
    """Names a file or folder, relative to the directory or absolute;
    "" and "." are the directory itself.
    """

    path: str


class FileNode(Wire):
    """An entry of a folder that is listed. `path`: relative, a folder's ends in "/"."""

    name: str
    path: str
    absolute: str
    type: Literal["file", "directory"]
    ignored: bool


class PatchHunk(Wire):
    """Lines of a diff, each with its mark."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: list[str]


class FilePatch(Wire):
    """Git's diff of a file, parsed into hunks."""

    old_file_name: str
    new_file_name: str
    hunks: list[PatchHunk]
    old_header: str | None = None
    new_header: str | None = None
    index: str | None = None


class FileContent(Wire):
    """A file: text trimmed at its end, or base64. `diff`: against what git has."""

    type: Literal["text", "binary"]
    content: str
    encoding: Literal["base64"] | None = None
    mime_type: str | None = None
    diff: str | None = None
    patch: FilePatch | None = None


class File(Wire):
    """A file that differs from what git has; lines added and removed."""

    path: str
    added: int
    removed: int
    status: FileChange


class FindText(Wire):
    """Searches files for a regular expression."""

    pattern: str


class FoundText(Wire):
    """A text of ripgrep's JSON output, whose shape the answer to a search has: a path,
    a line or a match.
    """

    text: str


class Submatch(Wire):
    """Where a pattern matched in a line; byte offsets."""

    match: FoundText
    start: int
    end: int


# The fields have the names of ripgrep's output, with underscores.
class FoundLine(Wire, rename=None):
    """A line that matches; `absolute_offset` in bytes from the start of the file."""

    path: FoundText
    lines: FoundText
    line_number: int
    absolute_offset: int
    submatches: list[Submatch]


class FindFiles(Wire):
    """Searches for file names, best match first. `dirs`: folders too."""

    query: str
    dirs: bool | None = None
    type: Literal["file", "directory"] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=FILES_NAMES.value)] | None = None


class FindSymbols(Wire):
    """Searches for symbols."""

    query: str


class FileSystemEntry(Wire):
    """A file or folder that a search found; `path` is relative, a folder's ends in "/"."""

    path: str
    type: Literal["file", "directory"]


class FoundFiles(Wire):
    """Files and folders, best match first."""

    location: LocationInfo
    data: list[FileSystemEntry]


class Symbol(Wire):
    """A symbol of a language server. `kind`: its SymbolKind;
    `location`: as the language server protocol has it.
    """

    name: str
    kind: int
    location: Any


# The contract spells `default_branch` with an underscore.
class VcsInfo(Wire, rename=None):
    """The branch that is checked out, and the repository's default branch."""

    branch: str | None = None
    default_branch: str | None = None


class VcsFileStatus(Wire):
    """A changed file with its lines added and removed; `File` under the names of /vcs/status."""

    file: str
    additions: int
    deletions: int
    status: FileChange


class VcsDiffQuery(Wire):
    """`mode`: against the last commit, or against where the branch left the default one.
    `context`: lines around.
    """

    mode: Literal["git", "branch"]
    context: Annotated[int, msgspec.Meta(ge=0, le=VCS_CONTEXT.value)] | None = None


class VcsFileDiff(Wire):
    """How a file differs; `patch` is git's diff text."""

    file: str
    additions: int
    deletions: int
    patch: str | None = None
    status: FileChange | None = None


VCS_GET = Operation("vcs.get", "GET", "/vcs", NoArguments, VcsInfo, "workspace.vcs:get_branches")
VCS_STATUS = Operation(
    "vcs.status",
    "GET",
    "/vcs/status",
    NoArguments,
    list[VcsFileStatus],
    "workspace.vcs:list_changed_files",
)
VCS_DIFF = Operation(
    "vcs.diff", "GET", "/vcs/diff", VcsDiffQuery, list[VcsFileDiff], "workspace.vcs:diff_work_tree"
)
FILE_LIST = Operation(
    "file.list", "GET", "/file", FileQuery, list[FileNode], "workspace.files:list_folder"
)
FILE_READ = Operation(
    "file.read", "GET", "/file/content", FileQuery, FileContent, "workspace.files:read_file_content"
)
FILE_STATUS = Operation(
    "file.status",
    "GET",
    "/file/status",
    NoArguments,
    list[File],
    "workspace.files:list_changed_files",
)
FIND_TEXT = Operation(
    "find.text", "GET", "/find", FindText, list[FoundLine], "workspace.find:find_text"
)
FIND_FILES = Operation(
    "find.files", "GET", "/find/file", FindFiles, list[str], "workspace.find:find_files"
)
FIND_SYMBOLS = Operation(
    "find.symbols", "GET", "/find/symbol", FindSymbols, list[Symbol], "project.lsp:find_symbols"
)
FS_FIND = Operation(
    "v2.fs.find", "GET", "/api/fs/find", FindFiles, FoundFiles, "workspace.find:complete_path"
)
