"""Parses patches as models write them, `*** Begin Patch` and unified diffs,
into the same operations. Pure.
"""

import re

from msgspec import Struct

from codeloop.schema.errors import CodeloopError
from codeloop.workspace.edit.patch_apply import Hunk

# `@@ -12,3 +12,4 @@ def function():`
_HUNK_HEADER = r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)"
# The start of the line `\ No newline at end of file`. The words differ by language.
_NO_NEWLINE_MARK = "\\ "
# The most `@@` lines of one hunk.
_MAX_SECTIONS = 20


class BadPatch(CodeloopError):
    """A patch can't be read; the message names the line (from 1) of the patch,
    unless it names no file at all.
    """


class AddFile(Struct, frozen=True):
    """The operation of making a file."""

    path: str
    content: str


class DeleteFile(Struct, frozen=True):
    """The operation of removing a file."""

    path: str


class UpdateFile(Struct, frozen=True):
    """The operation of changing a file, and perhaps moving it."""

    path: str
    hunks: tuple[Hunk, ...]
    move_to: str | None = None


PatchOperation = AddFile | DeleteFile | UpdateFile


def parse_patch(text: str) -> list[PatchOperation]:
    """Parse a patch of either format. Raises BadPatch with the line that can't be read."""
    lines = _strip_wrapper(text.replace("\r\n", "\n").split("\n"))
    begin = next(
        (index for index, line in enumerate(lines) if line.strip() == "*** Begin Patch"), None
    )
    if begin is not None:
        operations = _EnvelopeReader(lines, begin + 1).read_operations()
    elif any(line.startswith("*** ") for line in lines):
        raise BadPatch("line 1: the patch has no `*** Begin Patch` line")
    else:
        operations = _UnifiedReader(lines).read_operations()
    if not operations:
        raise BadPatch(
            "the patch names no file; begin it with `*** Begin Patch`, then `*** Update File: path`"
        )
    return operations


def _strip_wrapper(lines: list[str]) -> list[str]:
    """Blank out the lines of a code fence or a shell here-document around a patch,
    so that line numbers stay.
    """
    nonblank = [index for index, line in enumerate(lines) if line.strip()]
    if len(nonblank) < 2:
        return lines
    first, last = lines[nonblank[0]].strip(), lines[nonblank[-1]].strip()
    # `apply_patch <<'EOF'` up to `EOF`
    is_wrapped = first.startswith("```") or re.match(r"(cat|apply_patch)\b.*<<", first)
    if is_wrapped and (last == "```" or last.isalnum()):
        lines = [*lines]
        lines[nonblank[0]] = lines[nonblank[-1]] = ""
    return lines


def _find_next_nonblank(lines: list[str]) -> list[int]:
    """Return, for each line, the index of the next line (itself included) that is not blank,
    or `len(lines)`.
    """
    indexes = [len(lines)]
    for index in range(len(lines) - 1, -1, -1):
        indexes.append(index if lines[index].strip() else indexes[-1])
    return indexes[::-1]


class _EnvelopeReader:
    """Reads a patch between `*** Begin Patch` and `*** End Patch`.
    `start`: the index of the line after the former.
    """

    def __init__(self, lines: list[str], start: int) -> None:
        self._lines = lines
        self._next_nonblank = _find_next_nonblank(lines)
        # The index of the next line to read; once that is read, its number (from 1).
        self._index = start

    def read_operations(self) -> list[PatchOperation]:
        operations: list[PatchOperation] = []
        while self._index < len(self._lines):
            line = self._lines[self._index].rstrip()
            self._index += 1
            if line == "*** End Patch":
                return operations
            if not line:
                continue
            kind, _, path = line.partition(": ")
            path = path.strip()
            if kind not in {"*** Add File", "*** Delete File", "*** Update File"} or not path:
                raise BadPatch(
                    f"line {self._index}: expected `*** Add File: path`, `*** Update File: path`, "
                    f"`*** Delete File: path` or `*** End Patch`, found {line[:100]!r}"
                )
            operations.append(self._read_operation(kind, path))
        raise BadPatch(
            f"line {len(self._lines)}: the patch ends without `*** End Patch`; it may be cut off"
        )

    def _read_operation(self, kind: str, path: str) -> PatchOperation:
        match kind:
            case "*** Add File":
                return AddFile(path, self._read_new_file())
            case "*** Delete File":
                return DeleteFile(path)
            case _:
                return self._read_update(path)

    def _read_new_file(self) -> str:
        lines: list[str] = []
        while self._index < len(self._lines) and not self._lines[self._index].startswith("*** "):
            line = self._lines[self._index]
            self._index += 1
            if line.startswith("+"):
                lines.append(line[1:] + "\n")
            elif line.strip():
                raise BadPatch(
                    f"line {self._index}: every line of an added file begins with `+`, found {line[:100]!r}"
                )
        return "".join(lines)

    def _read_update(self, path: str) -> UpdateFile:
        move_to = None
        if self._index < len(self._lines) and self._lines[self._index].startswith("*** Move to: "):
            move_to = self._lines[self._index].removeprefix("*** Move to: ").strip()
            self._index += 1
        hunks: list[Hunk] = []
        start = self._index
        while self._index < len(self._lines):
            line = self._lines[self._index]
            if line.startswith("*** ") and line.rstrip() != "*** End of File":
                break
            # Models put blank lines between hunks; a blank line within one is an
            # empty line of the file.
            if not line.strip() and self._is_hunk_end():
                self._index += 1
                continue
            hunks.append(self._read_hunk())
        if not hunks and move_to is None:
            raise BadPatch(f"line {start}: the update of {path} has no hunk")
        return UpdateFile(path, tuple(hunks), move_to)

    def _is_hunk_end(self) -> bool:
        """Return whether the next line with text begins something else, or there is none."""
        next_index = self._next_nonblank[self._index]
        return next_index == len(self._lines) or self._lines[next_index].startswith(("*** ", "@@"))

    def _read_hunk(self) -> Hunk:
        sections: list[str] = []
        patch_line = self._index + 1
        line_number = 0
        while self._index < len(self._lines) and self._lines[self._index].startswith("@@"):
            head = self._lines[self._index]
            self._index += 1
            match = re.match(_HUNK_HEADER, head)
            if match:
                line_number = int(match[1])
                continue
            section = head[2:].removesuffix("@@").strip()
            if section:
                sections.append(section)
            if len(sections) > _MAX_SECTIONS:
                raise BadPatch(
                    f"line {self._index}: more than {_MAX_SECTIONS} `@@` lines before one hunk; give the last few"
                )
        old, new = list[str](), list[str]()
        is_change = False
        while self._index < len(self._lines):
            line = self._lines[self._index]
            if line.startswith(("@@", "*** ")) or (not line.strip() and self._is_hunk_end()):
                break
            self._index += 1
            if line.startswith(_NO_NEWLINE_MARK):
                continue
            is_change = _add_line(line, old, new, self._index) or is_change
        is_at_end = (
            self._index < len(self._lines)
            and self._lines[self._index].rstrip() == "*** End of File"
        )
        self._index += is_at_end
        if not is_change:
            raise BadPatch(f"line {patch_line}: the hunk has no `+` or `-` line")
        return Hunk(
            tuple(old),
            tuple(new),
            sections=tuple(sections),
            line=line_number,
            is_at_end=is_at_end,
            patch_line=patch_line,
        )


def _add_line(line: str, old: list[str], new: list[str], number: int) -> bool:
    """Add a hunk's line to its old side, new side or both; return whether it is a change."""
    mark, body = line[:1], line[1:]
    match mark:
        case "+":
            new.append(body)
        case "-":
            old.append(body)
        case " " | "":
            old.append(body)
            new.append(body)
        case _:
            raise BadPatch(
                f"line {number}: lines of a hunk begin with a blank, `+` or `-`, found {line[:100]!r}"
            )
    return mark in {"+", "-"}


class _UnifiedReader:
    """Reads unified diffs, git's included."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next_nonblank = _find_next_nonblank(lines)
        self._index = 0
        # The old path of a file that is renamed, until its new one is read.
        self._old_path = ""

    def read_operations(self) -> list[PatchOperation]:
        operations: list[PatchOperation] = []
        while self._index < len(self._lines):
            line = self._lines[self._index]
            if line.startswith(("GIT binary patch", "Binary files ")):
                raise BadPatch(
                    f"line {self._index + 1}: binary patches can't be applied; use a command"
                )
            if line.startswith("rename from "):
                self._old_path = line.removeprefix("rename from ").strip()
            elif line.startswith("rename to "):
                new_path = line.removeprefix("rename to ").strip()
                operations.append(UpdateFile(self._old_path, hunks=(), move_to=new_path))
                self._old_path = ""
            elif line.startswith("--- ") and self._peek_line().startswith("+++ "):
                operations.append(self._read_file(operations))
                continue
            elif line.startswith("@@ ") and not operations:
                raise BadPatch(
                    f"line {self._index + 1}: a hunk before any `--- path` and `+++ path` lines"
                )
            self._index += 1
        return operations

    def _peek_line(self) -> str:
        return self._lines[self._index + 1] if self._index + 1 < len(self._lines) else ""

    def _read_file(self, operations: list[PatchOperation]) -> PatchOperation:
        old_path, new_path = (
            _read_name(self._lines[self._index][4:], "a/"),
            _read_name(self._peek_line()[4:], "b/"),
        )
        line_number = self._index + 1
        self._index += 2
        hunks: list[Hunk] = []
        while self._index < len(self._lines) and self._lines[self._index].startswith("@@"):
            hunks.append(self._read_hunk())
        if not hunks:
            raise BadPatch(
                f"line {line_number}: no `@@ -line,count +line,count @@` after the names of the files"
            )
        if old_path == "/dev/null":
            return AddFile(new_path, "".join(line + "\n" for hunk in hunks for line in hunk.new))
        if new_path == "/dev/null":
            return DeleteFile(old_path)
        # git also names the new path of a renamed file before its hunks.
        if operations and operations[-1] == UpdateFile(old_path, hunks=(), move_to=new_path):
            operations.pop()
        return UpdateFile(
            old_path, tuple(hunks), move_to=new_path if new_path != old_path else None
        )

    def _read_hunk(self) -> Hunk:
        head = self._lines[self._index]
        match = re.match(_HUNK_HEADER, head)
        patch_line = self._index + 1
        self._index += 1
        old, new = list[str](), list[str]()
        is_change = False
        while self._index < len(self._lines) and not self._is_hunk_complete(
            match, len(old), len(new)
        ):
            line = self._lines[self._index]
            self._index += 1
            if not line.startswith(_NO_NEWLINE_MARK):
                is_change = _add_line(line, old, new, self._index) or is_change
        if not is_change:
            raise BadPatch(f"line {patch_line}: the hunk has no `+` or `-` line")
        return Hunk(
            tuple(old), tuple(new), line=int(match[1]) if match else 0, patch_line=patch_line
        )

    def _is_hunk_complete(
        self, header: re.Match[str] | None, old_count: int, new_count: int
    ) -> bool:
        """Return whether a hunk ends before this line. The counts are of its lines so far."""
        line = self._lines[self._index]
        if header:
            # Models miscount: a hunk goes on if its lines do,
            # and may end before it has as many as the header says.
            missing = (int(header[2] or 1) - old_count, int(header[4] or 1) - new_count)
            if missing == (0, 0) and not line.startswith("\\"):
                return not line or line[0] not in " +-" or self._is_file_header()
        if not line:
            return self._next_nonblank[self._index] == len(
                self._lines
            ) or self._peek_line().startswith("diff --git")
        return line.startswith(("@@", "diff --git ")) or self._is_file_header()

    def _is_file_header(self) -> bool:
        """Return whether the next file begins here; `--- ` alone may also be a removed line."""
        line = self._lines[self._index]
        third = self._lines[self._index + 2] if self._index + 2 < len(self._lines) else ""
        return (
            line.startswith("--- ")
            and self._peek_line().startswith("+++ ")
            and third.startswith("@@")
        )


def _read_name(text: str, prefix: str) -> str:
    """Return the path after `--- ` or `+++ `, without its prefix (`a/`,
    `b/`) and what may follow after a tab.
    """
    name = text.partition("\t")[0].strip()
    return name.removeprefix(prefix) if name != "/dev/null" else name
