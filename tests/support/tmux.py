"""Runs programs in a terminal of tmux, to use them as a person does: with keys,
and by the text on the screen.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

_POLL_SECONDS = 0.04
"""Seconds between two reads of the screen."""
TIMEOUT_SECONDS = 60.0
"""Seconds until an expected text has to be on the screen; many, since the machine may be busy."""
EXIT_MARK = "ended with exit code "
SHELL_COMMAND = ("sh", "-c", f'"$@"; echo "{EXIT_MARK}$?"; exec sleep 600', "sh")
"""Runs a program, prints its exit code, and keeps the terminal open;
tmux itself may miss the end of a program.
"""
TMUX_OPTIONS = (
    "set -g default-terminal tmux-256color",
    "set -ga terminal-overrides ,*:RGB",
    "set -sg escape-time 10",
    "set -g status off",
)


class Pane:
    """One program and its screen."""

    def __init__(self, socket: str, env: Mapping[str, str]) -> None:
        self._tmux = ["tmux", "-L", socket]
        self._env = dict(env)

    def screen(self, *, colours: bool = False) -> str:
        """Return the text on the screen. `colours`: with the sequences of its colours."""
        return self._run("capture-pane", "-p", *(["-e"] if colours else []))

    def sees(self, *texts: str, without: Sequence[str] = (), colours: bool = False) -> str:
        """Wait until all texts, and none of those in `without`, are on the screen;
        return the screen's text.

        `colours`: as for `screen`.
        """
        end = time.monotonic() + TIMEOUT_SECONDS
        while True:
            shown = self.screen(colours=colours)
            if all(text in shown for text in texts) and not any(text in shown for text in without):
                return shown
            assert time.monotonic() < end, f"never seen: {texts}, without {without}:\n{shown}"
            time.sleep(_POLL_SECONDS)

    def type(self, text: str, *keys: str) -> None:
        """Type a text, then press keys by tmux's names for them."""
        if text:
            self._run("send-keys", "-l", text)
        for key in keys:
            self._run("send-keys", key)

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal."""
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def ended(self) -> tuple[int, str]:
        """Wait until the program has ended; return its exit code,
        and the text that it left on the screen.
        """
        said, _, code = self.sees(EXIT_MARK).rpartition(EXIT_MARK)
        return int(code), said

    def again(self, command: Sequence[str]) -> None:
        """Run another program in the place of one that has ended."""
        self._run("respawn-pane", "-k", *SHELL_COMMAND, *command)

    def start(self, command: Sequence[str], cwd: Path, size: tuple[int, int]) -> None:
        """Start tmux with a program."""
        setting = [word for option in TMUX_OPTIONS for word in (*option.split(), ";")]
        place = ["-x", str(size[0]), "-y", str(size[1]), "-c", str(cwd)]
        self._run("-f", os.devnull, *setting, "new-session", "-d", *place, *SHELL_COMMAND, *command)

    def stop(self) -> None:
        """End the program and tmux."""
        subprocess.run(
            [*self._tmux, "kill-server"],
            env=self._env,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words],
            env=self._env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"tmux {' '.join(words)}: {done.stderr}"
        return done.stdout.rstrip()


@contextmanager
def run_in_pane(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], size: tuple[int, int] = (120, 40)
) -> Generator[Pane]:
    """Run a program in a terminal of its own; without tmux, the test is skipped."""
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux on the PATH: apt-get install tmux")
    made = Pane(f"codeloop-{os.getpid()}-{time.monotonic_ns()}", env)
    try:
        made.start(command, cwd, size)
        yield made
    finally:
        made.stop()
