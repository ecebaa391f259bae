"""No server's tool has the name of a permission that our rules are about."""

from pathlib import Path

import pytest

from codeloop.app.extensions.mcp import make_mcp_table
from codeloop.extend.mcp.cache.listing import ListedTool, Listing
from tests.support.scripted_project import open_scripted_project


@pytest.mark.parametrize(
    "name", ["webfetch_private", "external_directory", "doom_loop", "mcp_changed", "bash_kill"]
)
async def test_a_tool_that_would_be_named_like_a_permission_gets_another_name(
    tmp_path: Path, name: str
) -> None:
    """An "always" for it would allow what that permission stands for."""
    server, _, tool = name.partition("_")
    servers = {server: {"type": "local", "command": ["no-such-server"]}}
    async with open_scripted_project(tmp_path, [], mcp=servers) as it:
        table = make_mcp_table(
            it.project.settings, it.project.workspace, lambda _: None, lambda _: None
        )
        (made,) = table.name_tools({server: Listing(tools=[ListedTool(name=tool)])})
        assert made.startswith(f"{name}_")
