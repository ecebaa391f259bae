"""Tells the model when a command, such as `sed -i`,
left a file with a syntax error that it had not before.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from codeloop.schema.bounds.outlines import OUTLINED_FILE
from codeloop.schema.errors import CodeloopError
from codeloop.tool.files.edit_finisher import FileChange
from codeloop.tool.tool import ToolContext
from codeloop.workspace.edit.syntax import has_parser
from codeloop.workspace.files.encoding import decode_text
from codeloop.workspace.files.safe_open import read_file

# Further files of a line are not looked at.
_MAX_FILES = 50


def read_code_files(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the texts of those files whose syntax can be checked. Reads the disk."""
    files = [path for path in paths if has_parser(path)][:_MAX_FILES]
    return {path: text for path in files if (text := _read_text(path)) is not None}


def _read_text(path: Path) -> str | None:
    try:
        return decode_text(read_file(path, OUTLINED_FILE.value).data).content
    except (OSError, CodeloopError, ValueError):
        return None


def describe_broken_files(ctx: ToolContext, before: Mapping[Path, str]) -> list[str]:
    """Return a line for each file that does not parse any more;
    `before`: the texts before the command.
    """
    finisher = ctx.services.edit_finisher
    if finisher is None:
        return []
    changes = [
        FileChange(ctx.workspace.resolve(str(path)), None, b"", text_before=text, text_after=after)
        for path, text in before.items()
        if (after := _read_text(path)) is not None and after != text
    ]
    return finisher.describe_broken_syntax(ctx.session_id, changes, ctx.workspace.directory)
