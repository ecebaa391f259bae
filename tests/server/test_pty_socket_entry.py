"""Who may connect to a terminal: with the credential, or with a ticket."""

import asyncio
import re
from pathlib import Path

from codeloop.workspace.terminal.terminals import ConnectionTickets
from tests.server.support.screen import BASIC, connected, opened, refused
from tests.server.support.serving import Served, served

TICKET = {"x-opencode-ticket": "1"}


async def ticket(it: Served, pty_id: str) -> str:
    answer = await it.http.post(f"/pty/{pty_id}/connect-token", headers=TICKET)
    assert answer.status_code == 200, answer.text
    assert answer.json()["expires_in"] == 60
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        answer.json()["ticket"],
    )
    return answer.json()["ticket"]


async def test_without_a_credential_nobody_connects(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "cat")
        assert (await refused(it, pty_id, headers={}))[0] == 401
        assert (await refused(it, pty_id, headers={"Authorization": "Basic eDp5"}))[0] == 401
        assert (await refused(it, pty_id, headers={**BASIC, "Origin": "http://evil.example"}))[
            0
        ] == 403


async def test_a_ticket_stands_in_for_the_credential_once(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "cat")
        given = await ticket(it, pty_id)
        async with connected(it, pty_id, f"?ticket={given}", {}) as screen:
            await screen.socket.send("x\n")
            await screen.until("x\r\nx\r\n")
        status, body = await refused(it, pty_id, f"?ticket={given}", {})
        assert (status, body["_tag"]) == (403, "PtyForbiddenError")


async def test_a_ticket_is_for_its_terminal_and_directory(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with served(tmp_path) as it:
        pty_id, second = await opened(it, "cat"), await opened(it, "cat")
        assert (await refused(it, second, f"?ticket={await ticket(it, pty_id)}", {}))[0] == 403
        given = await ticket(it, pty_id)
        assert (await refused(it, pty_id, f"?ticket={given}&directory={other}", {}))[0] == 403
        assert (await refused(it, pty_id, f"?ticket={given}&directory=/nowhere", {}))[0] == 403
        assert other not in {
            project.settings.project_root.directory for project in it.app.projects
        }, "a stranger opens nothing"
        async with connected(it, pty_id, f"?ticket={given}&directory={it.work}", {}):
            pass
        for bad in ("?ticket=", "?ticket=x", f"?ticket={given}", "?ticket=x&ticket=y"):
            assert (await refused(it, pty_id, bad))[0] == 403, "also beside the credential"
        assert (await refused(it, "pty_none", "?ticket=x", {}))[0] == 403
        for bad in ("%00", "x" * 5000, "nowhere", "%ff"):
            assert (await refused(it, pty_id, f"?ticket={given}&directory={bad}", {}))[0] in {
                400,
                403,
            }
            assert (await refused(it, pty_id, f"?directory={bad}"))[0] in {400, 404}
        assert (await refused(it, pty_id, "?ticket=", {}))[0] in {401, 403}


async def test_a_ticket_expires(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "cat")
        (await it.project()).workspace.terminals.tickets = ConnectionTickets(0.02)
        given = await ticket(it, pty_id)
        await asyncio.sleep(0.03)
        assert (await refused(it, pty_id, f"?ticket={given}", {}))[0] == 403


async def test_a_ticket_needs_the_header(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "cat")
        path = f"/pty/{pty_id}/connect-token"
        for headers in ({}, {"x-opencode-ticket": "0"}, {"x-opencode-ticket": ""}):
            answer = await it.http.post(path, headers=headers)
            assert (answer.status_code, answer.json()["_tag"]) == (403, "PtyForbiddenError")
        assert (
            await it.http.post(path, headers={**TICKET, "Origin": "http://evil.example"})
        ).status_code == 403
        assert (await it.anonymous.post(path, headers=TICKET)).status_code == 401
        missing = await it.http.post("/pty/pty_none/connect-token", headers=TICKET)
        assert (missing.status_code, missing.json()["ptyID"]) == (404, "pty_none")
