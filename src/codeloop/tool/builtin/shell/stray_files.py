"""Asks the user whether protected files that appeared while a sandboxed command ran may stay."""

import asyncio
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from codeloop.kit.small_files import read_start
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON
from codeloop.tool.files.file_access import make_edit_needs
from codeloop.tool.tool import ToolContext
from codeloop.workspace.files.permission_name import make_permission_name
from codeloop.workspace.sandbox.protected_files import MovedFile
from codeloop.workspace.sandbox.refusals import ASK_OUTSIDE

_REASON = "It appeared while a sandboxed command ran, and decides what runs later. Keep it if it was you who made it."
# Files of a folder, and bytes of each file, that a question shows.
_MAX_SHOWN_FILES = 20
_SHOWN_BYTES = 100_000


async def ask_to_keep(moved_files: Iterable[MovedFile], ctx: ToolContext) -> list[str]:
    """Ask about each file, all of which were moved away, and put back those that may stay;
    return a note on each.
    """
    notes: list[str] = []
    for each in moved_files:
        name = make_permission_name(ctx.workspace, each.path)
        contents = await asyncio.to_thread(_describe_contents, each)
        metadata: JSON = {"keep": name + _name_only_file(each), "reason": _REASON, "diff": contents}
        try:
            await ctx.ask(
                Need(permission="sandbox", patterns=(f"keep {name}",), metadata=metadata),
                *make_edit_needs(ctx.workspace, [each.path], metadata),
            )
            # Fails if something else is at the path by now.
            is_kept = each.move_back()
        except (Denied, Rejected):
            is_kept = False
        if is_kept:
            notes.append(f"{name} appeared while the command ran. The user let it stay.")
        else:
            notes.append(
                f"{each.path} may not appear while commands are sandboxed: it decides what runs later. It was moved to "
                f"{each.moved}. {ASK_OUTSIDE}"
            )
    return notes


def _describe_contents(moved_file: MovedFile) -> str:
    """Return the diff that creates the file that was moved away, or the files of a folder."""
    # Imported late: few commands leave such files.
    from codeloop.kit.text.diff import make_unified_diff

    folder = moved_file.moved
    is_folder = folder.is_dir() and not folder.is_symlink()
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    files = sorted(islice(paths, _MAX_SHOWN_FILES + 1)) if is_folder else [folder]
    patches = [
        make_unified_diff(
            str(moved_file.path / path.relative_to(folder)), "", _read_or_describe(path)
        ).patch
        for path in files[:_MAX_SHOWN_FILES]
    ]
    if not files:
        patches = [make_unified_diff(str(moved_file.path), "", "(an empty folder)\n").patch]
    if len(files) > _MAX_SHOWN_FILES:
        patches.append(
            make_unified_diff(
                str(moved_file.path), "", "(and more files than are shown here)\n"
            ).patch
        )
    return "".join(patches)


def _name_only_file(moved_file: MovedFile) -> str:
    """Return the relative path of the only file in a folder, with a leading slash;
    "" for a file or several files.
    """
    folder = moved_file.moved
    if not folder.is_dir() or folder.is_symlink():
        return ""
    files = list(islice((path for path in folder.rglob("*") if not path.is_dir()), 2))
    return f"/{files[0].relative_to(folder)}" if len(files) == 1 else ""


def _read_or_describe(path: Path) -> str:
    """Return the text of a file; for one without text, a description in parentheses."""
    try:
        if path.is_symlink():
            return f"(a link to {replace_undecodable(str(path.readlink()))})\n"
        data = read_start(path, _SHOWN_BYTES + 1)
    except OSError as error:
        return f"(it can't be read: {error.strerror})\n"
    if not data:
        return "(an empty file)\n"
    if b"\0" in data:
        return "(its bytes are not text)\n"
    rest = (
        ""
        if len(data) <= _SHOWN_BYTES
        else f"\n(and more: {path.lstat().st_size:,} bytes in all)\n"
    )
    return data[:_SHOWN_BYTES].decode(errors="replace") + rest
