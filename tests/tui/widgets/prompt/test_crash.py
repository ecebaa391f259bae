"""A prompt in a terminal of its own, whose process is killed in the middle of a word."""

import os
import pty
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from select import select

import pytest

from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore

PROGRAM = """
import sys
from pathlib import Path
from tests.tui.widgets.prompt.driver import PromptApp
PromptApp(Path(sys.argv[1])).run()
"""


def drain(terminal: int, wait: float) -> bytes:
    with suppress(OSError):
        if select([terminal], [], [], wait)[0]:
            return os.read(terminal, 65_536)
    return b""


@pytest.mark.slow
def test_what_was_typed_survives_kill_9(tmp_path: Path) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM, str(tmp_path)])
    end = time.monotonic() + 60
    shown = b""
    while b"describe a task" not in shown:
        assert time.monotonic() < end, shown
        shown += drain(terminal, 0.1)
    os.write(terminal, b"half a thou")
    drafts = tmp_path / "drafts"
    while not any(b"half a thou" in path.read_bytes() for path in drafts.glob("new.*.json")):
        assert time.monotonic() < end
        drain(terminal, 0.05)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    os.close(terminal)
    store = PromptStore(tmp_path)
    assert store.drafts.adopt("new")
    draft = store.drafts.load("new")
    assert draft is not None
    assert (draft.text, draft.cursor) == ("half a thou", 11)
    store.close()
