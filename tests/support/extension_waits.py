"""Makes the waits for extensions as long as a loaded machine needs to start and load them."""

import pytest

from codeloop.extend.hooks import hooks
from codeloop.extend.host import host, hosts
from tests.support.patient_limits import LONG_LIMIT


@pytest.fixture(autouse=True)
def patient_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let turns of a module that imports this wait for an extension's process,
    however late it starts.
    """
    for module, names in (
        (hosts, ["HOST_WAIT"]),
        (host, ["HOST_START", "HOST_LOAD"]),
        (hooks, ["HOOK_ANSWER_TIME"]),
    ):
        for name in names:
            monkeypatch.setattr(module, name, LONG_LIMIT)
