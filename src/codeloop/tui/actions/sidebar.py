"""Shows or hides the sidebar, and loads its data: changed files, MCP servers, language servers,
the branch.
"""

from codeloop.schema.api.files import VCS_GET
from codeloop.schema.api.mcp import MCP_STATUS
from codeloop.schema.api.project import LSP_STATUS
from codeloop.schema.api.session_undo import SESSION_DIFF, SessionDiffQuery
from codeloop.schema.operation import NoArguments
from codeloop.tui.state.server_states import describe_lsp, describe_mcp
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.sidebar import Sidebar, SidebarData


async def refresh_sidebar(ui: Ui) -> None:
    """Load the sidebar's data, if it is shown. Raises CodeloopError."""
    if not ui.appearance.has_sidebar(ui.size.width) or ui.sessions is None:
        return
    client, session = ui.client, ui.tab.session
    files = (
        await client.call(SESSION_DIFF, SessionDiffQuery(session_id=session.id, whole=True))
        if session
        else []
    )
    mcp = {
        name: describe_mcp(each)
        for name, each in (await client.call(MCP_STATUS, NoArguments())).items()
    }
    lsp = {each.name: describe_lsp(each) for each in await client.call(LSP_STATUS, NoArguments())}
    branch = (await client.call(VCS_GET, NoArguments())).branch or ""
    # The widgets may be gone after the requests.
    if ui.is_ending:
        return
    ui.query_one(Sidebar).data = SidebarData(
        session_id=session.id if session else "", branch=branch, files=files, mcp=mcp, lsp=lsp
    )
    ui.draw()


async def toggle_sidebar(ui: Ui, _words: str) -> None:
    """Show the sidebar, or hide it."""
    ui.appearance.sidebar = "hide" if ui.appearance.has_sidebar(ui.size.width) else "show"
    ui.draw()
    await refresh_sidebar(ui)
