"""Checks of `codeloop doctor --online`: asks the model for one word, and starts each MCP server."""

import asyncio
from contextlib import closing

from codeloop.agent.answer.usage import Usage
from codeloop.agent.request.text_request import ask_for_text
from codeloop.app.doctor.finding import Finding
from codeloop.app.handlers.project.mcp import open_mcp_servers
from codeloop.app.models.open_models import make_providers
from codeloop.app.project import Project, open_project
from codeloop.app.settings import ProjectSettings
from codeloop.extend.mcp.mcp_server import McpServer
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.model.chat import ModelRequest, TextPiece, UserModelMessage
from codeloop.schema.bounds.doctor import DOCTOR_ONLINE
from codeloop.schema.errors import CodeloopError, get_error_message
from codeloop.store.ledger import PaidRequest
from codeloop.store.store import Store

# Some services refuse a smaller limit.
_MAX_ANSWER_TOKENS = 16


async def examine_online(settings: ProjectSettings, ref: str) -> list[Finding]:
    """Ask a model (`provider/model`, "" for none) and start the MCP servers;
    return a finding for each.
    """
    findings = [await _ask_model(settings, ref)] if ref else []
    if not any(settings.config.mcp):
        return findings
    project = await open_project(settings.startup)
    try:
        return [*findings, *await _start_servers(project)]
    finally:
        await project.close()


async def _ask_model(settings: ProjectSettings, ref: str) -> Finding:
    # The finding takes the place of the one about the key, which was not tried.
    name, fix = (
        "key",
        f"Check the key and the address: codeloop auth list, codeloop models {ref.partition('/')[0]}",
    )
    started_at = asyncio.get_running_loop().time()
    try:
        model = make_providers(settings).open_model(ref)
        request = ModelRequest(
            system="",
            messages=(UserModelMessage((TextPiece("Answer with the word: ready"),)),),
            max_tokens=_MAX_ANSWER_TOKENS,
        )
        usage = Usage(model.info.prices, request)
        with closing(Store(settings.home / "codeloop.db")) as store:
            usage.begin_entry(store.ledger, _make_paid_request(settings, ref))
            try:
                async with asyncio.timeout(DOCTOR_ONLINE.seconds):
                    _, end = await ask_for_text(model, request, usage)
            finally:
                usage.settle_entry()
    except TimeoutError:
        return Finding(
            "model", name, "problem", f"{ref} did not answer in {DOCTOR_ONLINE.seconds:.0f} s", fix
        )
    except CodeloopError as error:
        return Finding("model", name, "problem", str(error), fix)
    if end.error is not None:
        return Finding("model", name, "problem", get_error_message(end.error), fix)
    seconds = asyncio.get_running_loop().time() - started_at
    return Finding("model", name, "ok", f"{ref} answered in {seconds:.1f} s, for ${usage.cost:.4f}")


def _make_paid_request(settings: ProjectSettings, ref: str) -> PaidRequest:
    """Return the row of the request in the ledger, without a session."""
    directory, path = settings.project_root.directory_name, settings.project_root.relative_path
    return PaidRequest(
        session_id="",
        root_id="",
        message_id="",
        directory=directory,
        path=path,
        model=ref,
        kind="check",
    )


async def _start_servers(project: Project) -> list[Finding]:
    servers = [
        each for each in open_mcp_servers(project).by_name.values() if each.definition.is_enabled
    ]
    return list(await asyncio.gather(*map(_start_server, servers)))


async def _start_server(server: McpServer) -> Finding:
    fix = f"codeloop mcp debug {server.name}"
    try:
        async with asyncio.timeout(DOCTOR_ONLINE.seconds):
            listing = await server.connect()
    except TimeoutError:
        return Finding(
            "MCP servers",
            server.name,
            "problem",
            f"no answer in {DOCTOR_ONLINE.seconds:.0f} s",
            fix,
        )
    except ServerFailed as error:
        is_sign_in = server.status.state == "needs_auth"
        fix = f"codeloop mcp auth {server.name}" if is_sign_in else fix
        return Finding("MCP servers", server.name, "problem", str(error), fix)
    return Finding("MCP servers", server.name, "ok", f"connected, {len(listing.tools)} tools")
