"""Model requests that a sign-in plugin sends."""

import asyncio
import math
from pathlib import Path

import pytest

from codeloop.extend.host.plugin_fetch import PluginFetch
from codeloop.model.credentials.store import Credentials
from codeloop.model.errors import ModelUnavailable
from tests.extend.host.world import host_world


async def test_a_credential_that_can_not_be_read_ends_a_model_request_at_once(
    tmp_path: Path,
) -> None:
    credentials = Credentials(tmp_path / "auth.json")
    credentials.path.write_text("{")
    async with host_world(tmp_path) as it:
        plugin = it.write("plugin_auth.py", "")
        fetch = PluginFetch(
            it.host, plugin, "http://x", lambda: credentials.find_sign_in("p") or {}, math.inf
        )
        with pytest.raises(ModelUnavailable, match="are broken"):
            await asyncio.wait_for(fetch.post("/a", {}, b"{}"), 60)
