"""What a search is asked for, and what it finds."""

from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec import field as struct_field

GrepMode = Literal["content", "files", "count"]


class SearchFailed(Exception):
    """The search failed: a bad pattern, or ripgrep is missing. The text is the reason."""


class MatchLine(Struct, frozen=True):
    """A line of a file, without its end, cut when long. `is_match`: false for a line of context.

    `number` from 1; 0: no line of the file, but a separator of groups, a reference to known lines,
    or the note that the file is binary.
    """

    number: int
    text: str
    is_match: bool


class FileMatches(Struct):
    """The matches in one file. `matches` counts all of its matching lines,
    `lines` holds the first of them.
    """

    path: Path
    matches: int = 0
    lines: list[MatchLine] = struct_field(default_factory=list[MatchLine])


class GrepQuery(Struct, frozen=True):
    """The inputs of a search.

    `include`: a glob for paths (`!` before it excludes);
    `lines_before`, `lines_after`: around a match;
    `is_plain_text`: so the pattern is not a regular expression; `max_shown_matches`: of how many
    matches in a file the lines are kept; `links`: relative paths of links below the
    folder that are followed.
    """

    pattern: str
    include: str | None = None
    mode: GrepMode = "content"
    lines_before: int = 0
    lines_after: int = 0
    ignore_case: bool = False
    multiline: bool = False
    is_plain_text: bool = False
    max_shown_matches: int = 100
    links: tuple[str, ...] = ()


class GrepResult(Struct, frozen=True):
    """The result of a search, files with the newest first.
    `stop_reason`: why it ended early (empty: it did not).
    """

    files: list[FileMatches]
    matches: int
    stop_reason: str


class FileList(Struct, frozen=True):
    """The result of a listing. `stop_reason` as in GrepResult."""

    paths: list[str]
    stop_reason: str
