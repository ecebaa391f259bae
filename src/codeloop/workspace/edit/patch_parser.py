"""Parses patches as models write them, `*** Begin Patch` and unified diffs, into the same operations. Pure."""

import re

from msgspec import Struct

from codeloop.schema.errors import CodeloopError
from codeloop.workspace.edit.patch_apply import Hunk

_HUNK_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
# The start of the line `\ No newline at end of file`, which some tools translate.
_NO_NEWLINE_MARK = "\\ "
# The most `@@` lines of one hunk.
_MAX_SECTIONS = 20


class BadPatch(CodeloopError):
    """A patch can't be read; the message names the line (from 1) of the patch."""


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


Operation = AddFile | DeleteFile | UpdateFile


def parse_patch(text: str) -> list[Operation]:
    """Parse a patch of either format. Raises BadPatch with the line that can't be read."""
    lines = _strip_wrapper(text.replace("\r\n", "\n").split("\n"))
    begin = next((index for index, line in enumerate(lines) if line.strip() == "*** Begin Patch"), None)
    if begin is not None:
        operations = _EnvelopeReader(lines, begin + 1).read_operations()
    elif any(line.startswith("*** ") for line in lines):
        raise BadPatch("line 1: the patch has no `*** Begin Patch` line")
    else:
        operations = _UnifiedReader(lines).read_operations()
    if not operations:
        raise BadPatch("the patch names no file; begin it with `*** Begin Patch`, then `*** Update File: path`")
    return operations


def _strip_wrapper(lines: list[str]) -> list[str]:
    """Strip a code fence or a shell here-document around a patch; line numbers stay."""
    solid = [index for index, line in enumerate(lines) if line.strip()]
    if len(solid) >= 2:
        first, last = lines[solid[0]].strip(), lines[solid[-1]].strip()
        match = first.startswith("```") or re.match(r"(cat|apply_patch)\b.*<<", first)
        if match and (last == "```" or last.isalnum()):
            lines = [*lines]
            lines[solid[0]] = lines[solid[-1]] = ""
    return lines


def _find_next_solid(lines: list[str]) -> list[int]:
    """Return, for each line, the index of the next line (itself included) that is not blank, else `len(lines)`."""
    starts = [len(lines)]
    for index in range(len(lines) - 1, -1, -1):
        starts.append(index if lines[index].strip() else starts[-1])
    return starts[::-1]


class _EnvelopeReader:
    """Reads a patch between `*** Begin Patch` and `*** End Patch`."""

    def __init__(self, lines: list[str], at: int) -> None:
        self._lines = lines
        self._next_solid = _find_next_solid(lines)
        self._at = at

    def read_operations(self) -> list[Operation]:
        operations: list[Operation] = []
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            self._at += 1
            if line == "*** End Patch":
                return operations
            if not line:
                continue
            kind, _, path = line.partition(": ")
            path = path.strip()
            if kind not in {"*** Add File", "*** Delete File", "*** Update File"} or not path:
                raise BadPatch(
                    f"line {self._at}: expected `*** Add File: path`, `*** Update File: path`, "
                    f"`*** Delete File: path` or `*** End Patch`, found {line[:100]!r}"
                )
            operations.append(self._read_operation(kind, path))
        raise BadPatch(f"line {len(self._lines)}: the patch ends without `*** End Patch`; it may be cut off")

    def _read_operation(self, kind: str, path: str) -> Operation:
        match kind:
            case "*** Add File":
                return AddFile(path, self._read_new_file())
            case "*** Delete File":
                return DeleteFile(path)
            case _:
                return self._read_update(path)

    def _read_new_file(self) -> str:
        lines: list[str] = []
        while self._at < len(self._lines) and not self._lines[self._at].startswith("*** "):
            line = self._lines[self._at]
            self._at += 1
            if line.startswith("+"):
                lines.append(line[1:] + "\n")
            elif line.strip():
                raise BadPatch(f"line {self._at}: every line of an added file begins with `+`, found {line[:100]!r}")
        return "".join(lines)

    def _read_update(self, path: str) -> UpdateFile:
        move_to = None
        if self._at < len(self._lines) and self._lines[self._at].startswith("*** Move to: "):
            move_to = self._lines[self._at].removeprefix("*** Move to: ").strip()
            self._at += 1
        hunks: list[Hunk] = []
        start = self._at
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("*** ") and line.rstrip() != "*** End of File":
                break
            # Models put blank lines between hunks; a blank line within one is an empty line of the file.
            if not line.strip() and self._is_hunk_end():
                self._at += 1
                continue
            hunks.append(self._read_hunk())
        if not hunks and move_to is None:
            raise BadPatch(f"line {start}: the update of {path} has no hunk")
        return UpdateFile(path, tuple(hunks), move_to)

    def _is_hunk_end(self) -> bool:
        """Return whether the next line with text begins something else, or there is none."""
        at = self._next_solid[self._at]
        return at == len(self._lines) or self._lines[at].startswith(("*** ", "@@"))

    def _read_hunk(self) -> Hunk:
        sections: list[str] = []
        patch_line = self._at + 1
        line_number = 0
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            head = self._lines[self._at]
            self._at += 1
            match = _HUNK_HEADER.match(head)
            if match:
                line_number = int(match[1])
                continue
            section = head[2:].removesuffix("@@").strip()
            if section:
                sections.append(section)
            if len(sections) > _MAX_SECTIONS:
                raise BadPatch(
                    f"line {self._at}: more than {_MAX_SECTIONS} `@@` lines before one hunk; give the last few"
                )
        old, new, changed = list[str](), list[str](), False
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(("@@", "*** ")) or (not line.strip() and self._is_hunk_end()):
                break
            self._at += 1
            if line.startswith(_NO_NEWLINE_MARK):
                continue
            changed = _add_line(line, old, new, self._at) or changed
        is_at_end = self._at < len(self._lines) and self._lines[self._at].rstrip() == "*** End of File"
        self._at += is_at_end
        if not changed:
            raise BadPatch(f"line {patch_line}: the hunk has no `+` or `-` line")
        return Hunk(tuple(old), tuple(new), tuple(sections), line_number, is_at_end, patch_line)


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
            raise BadPatch(f"line {number}: lines of a hunk begin with a blank, `+` or `-`, found {line[:100]!r}")
    return mark in {"+", "-"}


class _UnifiedReader:
    """Reads unified diffs, git's included."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next_solid = _find_next_solid(lines)
        self._at = 0
        # The old path of a file that is renamed, until its new one is read.
        self._renames: dict[str, str] = {}

    def read_operations(self) -> list[Operation]:
        operations: list[Operation] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(("GIT binary patch", "Binary files ")):
                raise BadPatch(f"line {self._at + 1}: binary patches can't be applied; use a command")
            if line.startswith("rename from "):
                self._renames["from"] = line.removeprefix("rename from ").strip()
            elif line.startswith("rename to "):
                operations.append(
                    UpdateFile(self._renames.pop("from", ""), (), line.removeprefix("rename to ").strip())
                )
            elif line.startswith("--- ") and self._peek_line().startswith("+++ "):
                operations.append(self._read_file(operations))
                continue
            elif line.startswith("@@ ") and not operations:
                raise BadPatch(f"line {self._at + 1}: a hunk before any `--- path` and `+++ path` lines")
            self._at += 1
        return operations

    def _peek_line(self) -> str:
        return self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""

    def _read_file(self, operations: list[Operation]) -> Operation:
        before, after = _read_name(self._lines[self._at][4:], "a/"), _read_name(self._peek_line()[4:], "b/")
        head = self._at + 1
        self._at += 2
        hunks: list[Hunk] = []
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            hunks.append(self._read_hunk())
        if not hunks:
            raise BadPatch(f"line {head}: no `@@ -line,count +line,count @@` after the names of the files")
        if before == "/dev/null":
            return AddFile(after, "".join(line + "\n" for hunk in hunks for line in hunk.new))
        if after == "/dev/null":
            return DeleteFile(before)
        # git names the new path of a renamed file before its hunks, too.
        if operations and operations[-1] == UpdateFile(before, (), after):
            operations.pop()
        return UpdateFile(before, tuple(hunks), after if after != before else None)

    def _read_hunk(self) -> Hunk:
        head = self._lines[self._at]
        match = _HUNK_HEADER.match(head)
        patch_line = self._at + 1
        self._at += 1
        old, new, changed = list[str](), list[str](), False
        while self._at < len(self._lines) and not self._is_hunk_complete(match, len(old), len(new)):
            line = self._lines[self._at]
            self._at += 1
            if not line.startswith(_NO_NEWLINE_MARK):
                changed = _add_line(line, old, new, self._at) or changed
        if not changed:
            raise BadPatch(f"line {patch_line}: the hunk has no `+` or `-` line")
        return Hunk(tuple(old), tuple(new), (), int(match[1]) if match else 0, patch_line=patch_line)

    def _is_hunk_complete(self, match: re.Match[str] | None, old: int, new: int) -> bool:
        """Return whether a hunk ends before this line. `old`, `new`: its lines so far; `match`: its header."""
        line = self._lines[self._at]
        if match:
            # Models miscount: a hunk goes on if its lines do, and may end before it has as many as the header says.
            missing = (int(match[2] or 1) - old, int(match[4] or 1) - new)
            if missing == (0, 0) and not line.startswith("\\"):
                return not line or line[0] not in " +-" or self._is_file_header()
        if not line:
            return self._next_solid[self._at] == len(self._lines) or self._peek_line().startswith("diff --git")
        return line.startswith(("@@", "diff --git ")) or self._is_file_header()

    def _is_file_header(self) -> bool:
        """Return whether the next file begins here; `--- ` alone may also be a removed line."""
        line, at = self._lines[self._at], self._at
        third = self._lines[at + 2] if at + 2 < len(self._lines) else ""
        return line.startswith("--- ") and self._peek_line().startswith("+++ ") and third.startswith("@@")


def _read_name(text: str, prefix: str) -> str:
    name = text.partition("\t")[0].strip()
    return name.removeprefix(prefix) if name != "/dev/null" else name
