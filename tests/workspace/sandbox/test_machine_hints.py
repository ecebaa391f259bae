"""What hints at a machine on which a sandbox may be less than a full one."""

import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.workspace.sandbox.machine_hints import may_lack_sandbox
from tests.support import weak_machine
from tests.support.sandbox_support import find_sandbox

ASK = "from codeloop.workspace.sandbox.machine_hints import may_lack_sandbox; print(may_lack_sandbox())"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems have nothing to look at"
)


@pytest.mark.parametrize("weakness", ["no-namespaces", "no-mounts", "no-seccomp"])
def test_a_filter_of_system_calls_hints_at_it(weakness: str) -> None:
    command = [sys.executable, weak_machine.__file__, weakness, sys.executable, "-c", ASK]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


def test_a_machine_with_a_full_sandbox_need_not_be_tried() -> None:
    if find_sandbox() != "namespaces":
        pytest.skip("this machine has no full sandbox")
    rows = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    if not any(row.split(" ")[3:5] == ["/", "/"] for row in rows):
        pytest.skip("the root of this machine is a part of a file system, as in a chroot")
    assert not may_lack_sandbox()
