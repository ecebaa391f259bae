import os
import signal
import subprocess
import sys

import pytest

from codeloop.kit.processes import (
    UNKNOWN_START_TIME,
    get_machine_name,
    is_own_scope,
    read_pid_scope,
    read_start_time,
)


def test_this_place_is_here_and_another_is_not() -> None:
    assert is_own_scope(read_pid_scope())
    assert is_own_scope(os.uname().nodename), "as an older codeloop named it"
    assert get_machine_name(read_pid_scope()) == os.uname().nodename
    assert not is_own_scope("elsewhere")
    assert not is_own_scope(f"{os.uname().nodename}#0.0")


def test_a_process_has_a_start_until_it_is_dead_collected_or_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert read_start_time(child.pid) == read_start_time(child.pid) != ""
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert read_start_time(child.pid) == ""
    child.communicate()
    assert read_start_time(child.pid) == ""


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root makes a process namespace"
)
def test_a_proc_that_numbers_processes_as_another_namespace_does_is_not_read() -> None:
    shown = "read_pid_scope(), read_start_time(os.getpid()), repr(read_start_time(99_999))"
    code = f"import os; from codeloop.kit.processes import *; print({shown})"
    done = subprocess.run(
        ["unshare", "--pid", "--fork", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare failed" in done.stderr:
        pytest.skip(done.stderr)
    place, start, nobody = done.stdout.split()
    assert (start, nobody) == (UNKNOWN_START_TIME, "''")
    assert not is_own_scope(place)
