"""Carries single files between a real git folder and its private one."""

from collections.abc import Callable
from contextlib import suppress

from codeloop.workspace.git.private.base import Base
from codeloop.workspace.git.private.names import CarriedFile, describe_hiding
from codeloop.workspace.git.private.open_folder import FileChangedError, OpenFolder, make_stamp

_MAX_BYTES = 1024 * 1024 * 1024
# The mode of a submodule, as in an index.
_SUBMODULE_MODE = b"\0\0\xe0\0"


class Carrier:
    """The two folders, opened, and what they had in common.
    `notes`: what user and model should know.

    `has_written`: something was written in one of them; `has_waiting`: something can be carried
    only when no command runs.
    """

    def __init__(
        self, real: OpenFolder, private: OpenFolder, base: Base, *, is_idle: bool, is_checked: bool
    ) -> None:
        """`is_idle`: no command runs; `is_checked`: the repositories that commands
        made were looked through.
        """
        self.is_idle = is_idle
        self._is_checked = is_checked
        self.real = real
        self.private = private
        self.base = base
        self.notes: list[str] = []
        self.has_written = False
        self.has_waiting = False

    def carry(self, path: str, how: CarriedFile) -> None:
        """Make a file the same in both: what only a command has changed is carried out,
        else the real one counts.
        """
        real, private = self.real.read_stamp(path), self.private.read_stamp(path)
        base_real, base_private = self.base.get(path)
        if (real, private) == (base_real, base_private):
            return
        self.has_written = True
        if private != base_private and base_real == real:
            with suppress(FileChangedError):
                try:
                    is_carried = self._carry_out(path, how)
                except FileExistsError:
                    # It is carried later, once git outside of the sandbox does not work on it.
                    return
                if is_carried:
                    return
        elif (
            private != base_private
            and private is not None
            and how.is_kept
            and not self._are_equal(path)
        ):
            self.notes.append(
                f"{self.real.path / path} was changed outside of the sandbox meanwhile: that counts"
            )
        self.take_over(path, how.mark)

    def take_over(self, path: str, mark: Callable[[bytes], bytes] = bytes) -> None:
        """Make the private file like the real one, if either has changed.
        `mark`: as of CarriedFile.
        """
        stamp, private = self.real.read_stamp(path), self.private.read_stamp(path)
        if (stamp, private) == self.base.get(path):
            return
        self.has_written = True
        if stamp is None:
            self.private.remove(path)
            self.base.put(path, None, None)
            return
        try:
            data, status = self.real.read(path, _MAX_BYTES)
        except OSError:
            # A link or a pipe, say, which git would not make.
            self.private.remove(path)
            self.base.put(path, stamp, None)
            return
        with suppress(FileExistsError, FileChangedError):
            # Under git's own lock: a command that runs may have read the earlier one,
            # and be about to replace it.
            new = self.private.write(
                path, self._mark(path, mark, data), like=status, expected=private, is_locked=True
            )
            self.base.put(path, make_stamp(status), new)

    def _carry_out(self, path: str, how: CarriedFile) -> bool:
        """Carry a file of a command; returns False if its content may not be carried.

        Raises FileExistsError while git has locked the real one, and FileChangedError.
        """
        expected, private = self.base.get(path)[0], self.private.read_stamp(path)
        if private is None:
            if how.is_kept:
                return False
            self.real.remove(path)
            self.base.put(path, None, None)
            return True
        try:
            data, status = self.private.read(path, how.max_bytes)
        except OSError:
            return False
        before = b""
        if expected is not None:
            with suppress(OSError):
                before = self.real.read(path, how.max_bytes)[0]
        if (
            how.is_timed
            and not self._is_checked
            and data.count(_SUBMODULE_MODE) > before.count(_SUBMODULE_MODE)
        ):
            # The user's git would look into a repository that a command has made,
            # and may change any time.
            self.has_waiting = True
            raise FileExistsError(path)
        carried = how.check(data, before)
        if carried is None:
            self.notes.append(
                f"{self.real.path / path} was not changed: what the command left is not of git"
            )
            return False
        if carried != data:
            self.notes.append(
                f"lines of {self.real.path / path} that git would run were left out of it"
            )
        carried = how.unmark(carried, before)
        if carried != before or expected is None:
            stamp = self.real.write(path, carried, like=status, expected=expected, is_locked=True)
        else:
            stamp = expected
        own = make_stamp(status)
        if (marked := self._mark(path, how.mark, data)) != data:
            with suppress(FileExistsError, FileChangedError):
                own = self.private.write(path, marked, like=status, expected=own, is_locked=True)
        self.base.put(path, stamp, own)
        if (
            path.rpartition("/")[2] == "index"
            and carried != before
            and (text := describe_hiding(carried, before))
        ):
            self.notes.append(text)
        if path.endswith("info/exclude") and carried != before:
            self.notes.append(
                f"{self.real.path / path} was changed: git status does not show what it names"
            )
        if how.is_kept and path.endswith("HEAD") and before not in {b"", carried}:
            self.notes.append(f"HEAD went from {_name_head(before)} to {_name_head(carried)}")
        return True

    def _mark(self, path: str, mark: Callable[[bytes], bytes], data: bytes) -> bytes:
        """Return what of the real file stands in the private one: all of it, if it can't be marked.
        Commands go on without.
        """
        try:
            return mark(data)
        except OSError as error:
            self.notes.append(
                f"git in the sandbox takes hidden files for changed or deleted: {self.real.path / path}"
                f" can't be marked ({error.strerror or error}): do not add them"
            )
            return data

    def _are_equal(self, path: str) -> bool:
        try:
            return self.real.read(path, _MAX_BYTES)[0] == self.private.read(path, _MAX_BYTES)[0]
        except OSError:
            return False


def _name_head(data: bytes) -> str:
    """Return the branch or the commit of a HEAD."""
    text = data.decode("utf-8", "backslashreplace").strip()
    return (
        text.removeprefix("ref: ").removeprefix("refs/heads/")
        if text.startswith("ref:")
        else text[:10]
    )
