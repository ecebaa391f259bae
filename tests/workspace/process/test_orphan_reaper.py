"""The watcher over what we start ends only what carries our mark."""

import os
import subprocess

import pytest

from codeloop.workspace.process import orphan_reaper

MARK = "CODELOOP_CHILD=0123456789abcdef."


def told(given: str) -> str:
    """Return whom the watcher would end when it is given `given` and we are gone; it only says so."""
    script = orphan_reaper._SCRIPT.replace('kill -s "$signal" $found', "echo $found; exit 0")
    assert "kill" not in script
    run = subprocess.run(["/bin/sh", "-c", script], input=given, capture_output=True, text=True, timeout=20, check=True)
    return run.stdout


@pytest.mark.parametrize("given", ["", "\n", MARK, MARK[:20] + "\n", "CODELOOP_CHILD=.\n", "=\n", "*\n"])
def test_without_a_whole_mark_nothing_is_ended(given: str) -> None:
    """We may be killed before the mark is written, and an empty pattern would match every process there is."""
    assert told(given) == ""


def test_what_carries_the_mark_is_ended_and_nothing_else() -> None:
    with subprocess.Popen(
        ["sleep", "30"], env={**os.environ, "CODELOOP_CHILD": MARK.partition("=")[2] + "1."}
    ) as child:
        try:
            assert told(f"{MARK}\n").split() == [str(child.pid)]
        finally:
            child.kill()
