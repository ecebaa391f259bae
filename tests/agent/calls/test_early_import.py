"""What the first call needs is imported while a slow model is waited for,
and not for a model that answers at once.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys
from codeloop.agent.calls.early_import import end_timer, import_while_waiting

async def main():
    assert import_while_waiting({"question"}) is None
    early = import_while_waiting({"edit"})
    end_timer(early)
    end_timer(None)
    assert early.cancelled()
    assert "codeloop.tool.builtin.shell.bash" not in sys.modules
    import_while_waiting({"read", "bash"})
    while not hasattr(sys.modules.get("codeloop.tool.builtin.files.read"), "read"):
        await asyncio.sleep(0.01)
    assert hasattr(sys.modules["codeloop.tool.builtin.shell.bash"], "bash")
    assert "codeloop.agent.calls.call_context" in sys.modules
    assert "codeloop.workspace.snapshot.scanner" in sys.modules
    assert "codeloop.tool.builtin.files.edit" not in sys.modules
    assert import_while_waiting({"bash"}) is None

asyncio.run(main())
"""


@pytest.mark.slow
def test_what_an_offered_tool_needs_is_imported_unless_the_answer_comes_first() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
