"""What the first call needs is imported while a slow model is waited for, and not for a model that answers at once."""

import subprocess
import sys

import pytest

from codeloop.agent.calls.early_import import end_timer, import_while_waiting

PROGRAM = """
import asyncio, sys
from codeloop.agent.calls.early_import import import_while_waiting

async def main():
    assert "codeloop.tool.builtin.shell.bash" not in sys.modules
    assert import_while_waiting({"read"}) is None
    import_while_waiting({"bash", "read"})
    while not hasattr(sys.modules.get("codeloop.tool.builtin.shell.bash"), "bash"):
        await asyncio.sleep(0.01)
    assert "codeloop.tool.builtin.files.edit" not in sys.modules
    assert import_while_waiting({"bash"}) is None

asyncio.run(main())
"""


@pytest.mark.slow
def test_what_an_offered_tool_needs_is_imported_while_the_model_is_waited_for() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)


async def test_an_answer_that_comes_first_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "codeloop.tool.builtin.files.edit", raising=False)
    timer = import_while_waiting({"edit"})
    assert timer is not None
    end_timer(timer)
    assert timer.cancelled()
    end_timer(None)
