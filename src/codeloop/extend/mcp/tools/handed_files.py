"""Files that a local server hands over by their paths: copied from what only the server sees, its
`/tmp`, its home and its own folder, to where the agent's tools and the user reach them.
"""

import os
import re
import stat
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from codeloop.extend.mcp.mcp_server import McpServer
from codeloop.extend.mcp.transport.server_refusals import find_server_places
from codeloop.kit.small_files import write_all
from codeloop.schema.bounds.extension import MCP_HANDED_FILE
from codeloop.tool.tool import ToolContext
from codeloop.workspace.files.saved_outputs import create_output_file, shorten_output
from codeloop.workspace.process.program_sandboxes import PrivatePlaces
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any

# A path in a text: `/tmp/x/page.yml`, `(../../tmp/x.yml)`, `file:///tmp/x.pdf`, `report.xlsx`.
_PATH = (
    r"(?:(?<![\w./@%+-])|(?<=://))(?!//)"
    r"((?:\.{0,2}/|[\w@%+-]+/)*[\w@%+.-]*[\w%+-]\.\w{1,8}|/(?:[\w@%+.-]+/)*[\w@%+.-]+)"
)
_QUOTED_PATH = r"""["'`]([^"'`\n]*\.\w{1,8})["'`]"""
_MAX_FILES = 20
# In a longer text only the start is searched: it is content, and most of it is not shown.
_MAX_SEARCHED_CHARS = 100_000


def hand_over_files(server: McpServer, text: str, ctx: ToolContext) -> str:
    """Return a text with the paths of files that only the server sees replaced by those of
    copies. Reads and writes the disk.
    """
    if not re.search(r"\.\w|/", text):
        return text
    found = find_server_places(server.definition, server.consent.dependencies)
    if found is None:
        return text
    start, places = found
    files = ((word, _locate(word, start, places)) for word in list_path_words(text))
    copies: dict[str, str] = {}
    for word, place in islice(((word, place) for word, place in files if place), _MAX_FILES):
        copy = copy_file(*place, ctx.workspace.scratch)
        if copy is not None:
            copies[word] = shorten_output(copy)
    # The longest first: one path may be the end of another.
    for word in sorted(copies, key=len, reverse=True):
        text = re.sub(rf"(?:file://|(?<![\w./-])){re.escape(word)}(?![\w-])", copies[word], text)
    return text


def list_path_words(text: str) -> list[str]:
    """Return the words of a text that may be paths of files, each once."""
    searched = text[:_MAX_SEARCHED_CHARS]
    words = (*re.findall(_QUOTED_PATH, searched), *re.findall(_PATH, searched))
    return list(dict.fromkeys(words))


def _locate(word: str, start: Path, places: PrivatePlaces) -> tuple[Path, Path] | None:
    """Return the file that a server means by a path, and the folder that it may be in;
    None: it is not in a folder that the server alone sees.
    """
    path = Path(os.path.normpath(start / unquote(word)))
    if is_below_any(path, places.shown):
        return None
    # The innermost: a server's own folder lies in its home.
    for point in sorted(places.folders, key=lambda each: len(each.parts), reverse=True):
        if path.is_relative_to(point):
            folder = places.folders[point]
            file = folder / path.relative_to(point)
            return (file, folder) if file.is_file() else None
    return None


def copy_file(file: Path, top: Path, scratch: Path) -> Path | None:
    """Copy a file to the folder of saved outputs; None: it can't be read, is too large,
    or a link leads out of `top`.
    """
    try:
        source = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(source)
        # The path of the open file: the server may put links in the way at any time.
        real = Path(os.path.realpath(f"/proc/self/fd/{source}"))
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_size > MCP_HANDED_FILE.value
            or not real.is_relative_to(os.path.realpath(top))
        ):
            return None
        path, target = create_output_file(scratch)
        try:
            # Its size may be another by now: the server can go on writing.
            left = MCP_HANDED_FILE.value
            while left >= 0 and (data := os.read(source, min(1 << 20, left + 1))):
                write_all(target, data)
                left -= len(data)
        finally:
            os.close(target)
        if left < 0:
            path.unlink()
            return None
        suffix = file.suffix if re.fullmatch(r"\.\w{1,8}", file.suffix) else ".txt"
        return path.replace(path.with_suffix(suffix))
    except OSError:
        return None
    finally:
        os.close(source)
