"""Asks the user, at the first call of a server, whether it may write where its entry names files
or folders.
"""

import asyncio

from codeloop.extend.mcp.mcp_server import McpServer
from codeloop.extend.mcp.transport.agreed_places import (
    hold_agreement,
    list_open_places,
    note_answer,
)
from codeloop.extend.mcp.transport.server_refusals import describe_access
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.permission import NOBODY_MESSAGE, Need
from codeloop.tool.tool import ToolContext

WRITE_PERMISSION = "mcp_write"
"""The permission to write at the places that a server's entry names."""


async def ask_for_places(server: McpServer, ctx: ToolContext) -> None:
    """Ask once about the places that a server of the user's configuration names and may only read.
    If it may write there, it is started again for that. Where nobody can be asked, it is not.
    """
    consent, definition = server.consent, server.definition
    if consent.has_asked_places or definition.scope or not ctx.session.is_attended:
        return
    consent.has_asked_places = True
    access = await asyncio.to_thread(describe_access, definition, consent.dependencies)
    if access is None:
        return
    folder = consent.dependencies.get_server_folder(definition)
    places = list_open_places(folder, access.places.values())
    if not places:
        return
    shown = [name for name, place in access.places.items() if place in places]
    need = Need(
        permission=WRITE_PERMISSION,
        patterns=(server.name,),
        metadata={"server": server.name, "places": shown},
    )
    try:
        await ctx.ask(need)
    except Rejected as error:
        if error.message != NOBODY_MESSAGE:
            note_answer(folder, places, is_agreed=False)
        return
    except Denied:
        return
    if ctx.session.was_allowed_by_person(WRITE_PERMISSION):
        note_answer(folder, places, is_agreed=True)
    else:
        # A profile, `--auto` or a rule of this session says nothing about later ones.
        hold_agreement(folder, places)
    if server.is_running:
        await server.disconnect()
