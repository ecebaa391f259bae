"""Searches the files of public repositories with grep.app, through its MCP server,
which needs no key.
"""

from codeloop.schema.wire import JSON
from codeloop.tool.web.exa import call_tool
from codeloop.tool.web.search_service import SearchResults, SearchService

PUBLIC_URL = "https://mcp.grep.app"


async def search_public_code(
    service: SearchService, query: str, _amount: int, *, filters: JSON
) -> SearchResults:
    """Search for a text; `filters`: `repo`, `path`, `language` (a list), `useRegexp`.
    Raises ToolFailure.
    """
    return await call_tool(service, "searchGitHub", {"query": query, **filters})
