"""Telling processes apart: by their start, their machine, their boot and their namespace."""

import os
import signal
import subprocess
import sys

import pytest

from codeloop.kit.alive import ALIVE, here, is_here, machine_of, start_of


def test_this_place_is_here_and_another_is_not() -> None:
    assert is_here(here())
    assert is_here(os.uname().nodename), "as an older codeloop named it"
    assert machine_of(here()) == os.uname().nodename
    assert not is_here("elsewhere")
    assert not is_here(f"{os.uname().nodename}#0.0")


def test_a_process_has_a_start_until_it_is_dead_collected_or_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert start_of(child.pid) == start_of(child.pid) != ""
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_of(child.pid) == ""
    child.communicate()
    assert start_of(child.pid) == ""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root makes a process namespace")
def test_a_proc_that_numbers_processes_as_another_namespace_does_is_not_read() -> None:
    code = "import os; from codeloop.kit.alive import *; print(here(), start_of(os.getpid()), repr(start_of(99_999)))"
    done = subprocess.run(
        ["unshare", "--pid", "--fork", sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if "unshare failed" in done.stderr:
        pytest.skip(done.stderr)
    place, start, nobody = done.stdout.split()
    assert (start, nobody) == (ALIVE, "''")
    assert not is_here(place)
