"""Our side of the protocol project's conformance suite: uses the server at an
address as a session would.

Connects, signs in where that is wanted with a browser that agrees, and calls every tool;
the suite judges what it saw.
"""

import asyncio
import faulthandler
import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import QuestionAnswers, QuestionReplied
from codeloop.tool.tool import ToolFailure
from tests.extend.mcp.remote import opened
from tests.extend.mcp.world import World, world

SIGN_INS = 3
GIVEN: dict[str, Any] = {"a": 5, "b": 3}
METADATA = "https://conformance-test.local/client-metadata.json"


def definition(url: str) -> dict[str, Any]:
    """Return the configuration that a person would write for a scenario."""
    context: dict[str, str] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    oauth = {"clientId": context.get("client_id"), "clientSecret": context.get("client_secret")}
    if os.environ.get("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd":
        oauth["clientId"] = METADATA
    given = {name: value for name, value in oauth.items() if value}
    return {"type": "remote", "url": url, **({"oauth": given} if given else {})}


async def signed_in(it: World) -> None:
    """Sign in as a person whose browser agrees at once."""
    going_on = it.servers.begin_sign_in(it.server())
    address = await going_on.wait_for_address()
    await asyncio.to_thread(opened, address)
    await going_on.wait()


async def answering(it: World) -> None:
    """Answer every question with nothing, as a person who goes on to the next."""
    while True:
        for request in it.ctx.store.list_pending_questions():
            answers: list[list[str]] = [[] for _ in request.questions]
            reply = QuestionAnswers(
                session_id=request.session_id, request_id=request.id, answers=answers
            )
            it.ctx.store.append(QuestionReplied(properties=reply))
        await asyncio.sleep(0.05)


async def used(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with world(Path(folder), {"p": definition(url)}) as it:
            person = asyncio.create_task(answering(it))
            for _ in range(SIGN_INS):
                try:
                    listing = await it.server().connect()
                    it.table.__dict__.pop("remembered", None)
                    for tool in listing.tools:
                        wanted = tool.schema.get("properties") or {}
                        print(
                            tool.name,
                            await it.call(
                                tool.name, **{key: GIVEN[key] for key in wanted if key in GIVEN}
                            ),
                        )
                    break
                except (ServerFailed, ToolFailure) as error:
                    print(error, file=sys.stderr)
                    if it.server().status.state != "needs_auth":
                        raise
                    await signed_in(it)
            person.cancel()
            with suppress(asyncio.CancelledError):
                await person


if __name__ == "__main__":
    faulthandler.dump_traceback_later(230, exit=True)  # a hang says where
    try:
        asyncio.run(used(sys.argv[1]))
    except CodeloopError as problem:
        sys.exit(str(problem))
