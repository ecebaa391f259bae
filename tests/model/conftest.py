"""Models of several protocols behind a test server, for the tests in this folder."""

import pytest

from codeloop.model.catalog import local_servers
from codeloop.model.credentials import cloud_request
from codeloop.model.local import context_length
from codeloop.schema.wire import replace
from tests.support.models import anthropic, asking, no_proxies, openai, responses


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers on this machine have a minute to answer, as a loaded machine needs;
    tests of limits set their own.
    """
    for module, name in (
        (local_servers, "DISCOVER_TIME"), (context_length, "LOCAL_STATUS_TIME"), (cloud_request, "CLOUD_METADATA")
    ):  # fmt: skip
        monkeypatch.setattr(module, name, replace(getattr(module, name), value=60_000))


__all__ = ["anthropic", "asking", "no_proxies", "openai", "responses"]
