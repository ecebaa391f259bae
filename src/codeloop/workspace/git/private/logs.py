"""Carries the logs of references: what commands appended is appended,
and the log of the stash is rewritten.
"""

import re
from collections.abc import Sequence
from contextlib import suppress

from codeloop.workspace.git.private.carrier import Carrier
from codeloop.workspace.git.private.names import LOG_BYTES, LOG_LINES
from codeloop.workspace.git.private.open_folder import FileChangedError, make_stamp
from codeloop.workspace.git.private.refs import STASH, RefCarrier, RefChange, Refs

_MAX_LOGS = 100_000


class LogCarrier:
    """Carries the logs of one git folder, after its references."""

    def __init__(self, carrier: Carrier, refs: RefCarrier) -> None:
        self._carrier = carrier
        self._refs = refs
        # The references that are there by now, None for the folder of a work tree,
        # and the length of the logs' folder.
        self._real: Refs | None = None
        self._start = 0

    def carry(self, unit: str, changes: Sequence[RefChange], *, has_tree: bool) -> None:
        """Carry all logs of a git folder. `changes`: those of its references that were made;
        `has_tree`: as of Unit.
        """
        carrier = self._carrier
        self._real = carrier.base.refs.get(unit)
        self._start = len(f"{unit}logs/")
        deleted = {f"{unit}logs/{change.name}" for change in changes if not change.new}
        paths = {path for path in carrier.base.files if path.startswith(f"{unit}logs/")}
        for side in (carrier.real, carrier.private):
            paths |= set(side.walk(f"{unit}logs", _MAX_LOGS))
        closed = {
            f"{unit}logs/{name}" for name in (*self._refs.closed, *(() if has_tree else ("HEAD",)))
        }
        for path in sorted(path for path in paths if not path.endswith(".lock")):
            with suppress(OSError):
                if path in closed:
                    carrier.take_over(path)
                else:
                    self._carry_log(
                        path, is_stash=path == f"{unit}logs/{STASH}", is_deleted=path in deleted
                    )

    def _carry_log(self, path: str, *, is_stash: bool, is_deleted: bool) -> None:
        carrier = self._carrier
        real, private = carrier.real.read_stamp(path), carrier.private.read_stamp(path)
        base_real, base_private = carrier.base.get(path)
        if (real, private) == (base_real, base_private):
            return
        carrier.has_written = True
        before = carrier.real.read(path, LOG_BYTES)[0] if real is not None else b""
        if private is not None and private != base_private:
            data, status = carrier.private.read(path, LOG_BYTES)
            common = base_private[1] if base_private is not None else 0
            new = data[common:]
            if data[:common] == before[:common] and re.fullmatch(LOG_LINES, new):
                is_true = self._is_true(path, new)
                if not is_true and not carrier.is_idle:
                    # The reference was read before the command changed it: both are carried later.
                    return
                if is_true and (not before.endswith(new) or real == base_real):
                    carrier.real.append(path, new)
                if is_true and real == base_real:
                    # Both have the same lines now.
                    carrier.base.put(path, carrier.real.read_stamp(path), make_stamp(status))
                    return
            elif is_stash and real == base_real and re.fullmatch(LOG_LINES, data):
                self._rewrite_stash(path, before, data)
                return
        elif private is None and (is_deleted or is_stash) and real == base_real:
            if is_stash:
                self._keep_dropped(before, b"")
            carrier.real.remove(path)
            carrier.base.put(path, None, None)
            return
        carrier.take_over(path)

    def _is_true(self, path: str, lines: bytes) -> bool:
        """Return whether new lines of a log lead to what is there: their last commit
        is that of the reference.
        """
        name, last = path[self._start :], "".join(_list_commits(lines)[-1:])
        if name != "HEAD":
            return self._real is not None and self._real.get(name) == last
        is_known = any(last in refs.values() for refs in self._carrier.base.refs.values())
        return is_known or bool(last and self._refs.has_all([last]))

    def _rewrite_stash(self, path: str, before: bytes, data: bytes) -> None:
        """Replace the log of the stash, which is the list of its entries."""
        carrier = self._carrier
        self._keep_dropped(before, data)
        status = carrier.private.read(path, LOG_BYTES)[1]
        with suppress(FileExistsError, FileChangedError):
            expected = carrier.base.get(path)[0]
            stamp = carrier.real.write(path, data, like=status, expected=expected, is_locked=True)
            carrier.base.put(path, stamp, make_stamp(status))

    def _keep_dropped(self, before: bytes, after: bytes) -> None:
        remaining = set(_list_commits(after))
        dropped = [commit for commit in _list_commits(before) if commit not in remaining]
        kept = self._refs.keep(STASH, dropped)
        self._carrier.notes += [
            f"an entry of the stash was dropped: it is kept as {name}" for name in kept
        ]


def _list_commits(log: bytes) -> list[str]:
    """Return the commit of each line of a log."""
    return [line.split(b" ", 2)[1].decode() for line in log.splitlines() if line.count(b" ") > 1]
