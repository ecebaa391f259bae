"""No process that we started outlives us, however we end (SIGKILL included).

Every command carries a mark in its environment. A small shell waits on a pipe whose other end only we hold; when
that closes, because we are gone, it ends whatever carries the mark.
"""

import os
import subprocess
from collections.abc import Mapping

from codeloop.kit.processes import end_tree, hide
from codeloop.schema.limits import SHELL_TERM

MARK = "CODELOOP_CHILD"

# Without a whole mark the pattern would match every process there is: we may be killed before it is written.
_SCRIPT = r"""
read -r mark || exit 0
case "$mark" in CODELOOP_CHILD=????????????????.) ;; *) exit 0 ;; esac
read -r _
for signal in TERM KILL KILL KILL; do
  if [ -r /proc/self/environ ]; then
    found=$(grep -lsF -e "$mark" /proc/[0-9]*/environ | cut -d/ -f3)
  else
    found=$(ps -axwwE -o pid=,command= | grep -F -e "$mark" | grep -v 'grep -F' | awk '{print $1}')
  fi
  [ -n "$found" ] || exit 0
  kill -s "$signal" $found
  sleep 0.2
done
"""


class OrphanReaper:
    """Marks what we start, and watches over it from a process of its own. `close` ends both."""

    def __init__(self) -> None:
        self._name = os.urandom(8).hex()
        self._mark = f"{MARK}={self._name}."
        self._count = 0
        self._watcher: subprocess.Popen[bytes] | None = None

    def environment(self) -> dict[str, str]:
        """Return the variable that marks one more tree of processes."""
        self._count += 1
        return {MARK: f"{self._name}.{self._count}."}

    def watch(self, environment: Mapping[str, str]) -> None:
        """Start the watcher unless it runs, before a program is started with this environment.

        When keys are kept from the program, it can't read them from our own memory either. Our own mark, if another
        codeloop started us, must stay readable.
        """
        if os.environ.keys() - environment.keys() and MARK not in os.environ:
            hide()
        if self._watcher is not None:
            return
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
            cwd="/",
            start_new_session=True,
        )
        if self._watcher.stdin is not None:
            self._watcher.stdin.write(self._mark.encode() + b"\n")
            self._watcher.stdin.flush()

    async def close(self) -> None:
        """End everything marked that still runs, then the watcher."""
        if self._count:
            await end_tree(0, self._mark, SHELL_TERM.seconds)
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.communicate()
            self._watcher = None
