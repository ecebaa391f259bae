"""Servers that others have published are used as in a session: programs, streamable HTTP, SSE,
behind a provider.
"""

import asyncio
import functools
import http.server
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.event import QuestionAnswers, QuestionReplied
from codeloop.tool.tool import ToolFailure
from tests.cli.program import Desk
from tests.extend.mcp.remote import opened
from tests.extend.mcp.world import World, world
from tests.interop.stage import INTEROP_FOLDER, fill_folder, find_cache, make_python_environment
from tests.support.scripted_project import wait_until

pytestmark = pytest.mark.interop
SERVERS = INTEROP_FOLDER / "servers"
INSTALL = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]


FAST = """\
import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions

kind, port = sys.argv[1], int(sys.argv[2])
provider = InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{port}",
    client_registration_options=ClientRegistrationOptions(enabled=True),
    revocation_options=RevocationOptions(enabled=True),
)
server = FastMCP("fast", auth=provider if kind == "oauth" else None)


@server.tool
def add(a: int, b: int) -> int:
    'Add two numbers.'
    return a + b


server.run(transport="sse" if kind == "sse" else "http", host="127.0.0.1", port=port, show_banner=False)
"""

FORMS = """\
import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = FastMCP("forms")


@dataclass
class Person:
    'What the form asks for.'

    name: str
    age: int


@server.tool
async def greet(ctx: Context) -> str:
    'Ask who it is, and greet.'
    answer = await ctx.elicit("Who are you?", response_type=Person)
    return f"hello {answer.data.name}, {answer.data.age}" if answer.action == "accept" else answer.action


@server.tool
async def greet_in_rounds(ctx: Context) -> str | InputRequiredResult:
    'Say what has to be asked, and greet when it is called again with that.'
    if ctx.input_responses is None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        asked = ElicitRequest(params=ElicitRequestFormParams(message="Who are you?", requested_schema=schema))
        return InputRequiredResult(input_requests={"who": asked}, request_state="asked")
    return f"hello {ctx.input_responses['who'].content['name']}"


if len(sys.argv) > 1:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
else:
    server.run(show_banner=False)
"""
"""A server whose tools ask: by a form, and by an answer that says what is needed."""


def published() -> Path:
    """Return where the servers of npm are."""
    inputs = [SERVERS / "package.json", SERVERS / "package-lock.json"]
    return (
        fill_folder(find_cache("servers", *inputs), inputs, [["node", "--version"], INSTALL])
        / "node_modules"
    )


def environment(requirements: str = "requirements.txt") -> Path:
    """Return the programs of an environment with servers that are written in Python."""
    wanted = SERVERS / requirements
    return make_python_environment(f"servers-python-{wanted.stem}", wanted) / "bin"


@contextmanager
def listening(command: list[str], port: int, **variables: str) -> Generator[None]:
    """Run a server until the end, once it listens."""
    running = subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            assert running.poll() is None
            assert time.monotonic() < deadline
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield
    finally:
        running.kill()
        running.wait(60)


@pytest.fixture
def port() -> int:
    """A free port, of those that the kernel gives nobody by itself: it stays free
    until the server has started.
    """
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", random.SystemRandom().randrange(20_000, 30_000)))
            return probe.getsockname()[1]


@pytest.fixture
def page(tmp_path: Path) -> Generator[str]:
    """Serve a page; yields its address."""
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("<title>Notes</title><h1>Buy milk</h1>")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            del code, size

    handler = functools.partial(Quiet, directory=str(tmp_path / "page"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def fast(kind: str, port: int) -> list[str]:
    """Return the command of a server that is written with FastMCP;
    the kind `oauth` has a provider for signing in.
    """
    return [str(environment() / "python"), "-c", FAST, kind, str(port)]


def local(*command: Any) -> dict[str, Any]:
    return {"type": "local", "command": list(map(str, command))}


@asynccontextmanager
async def forms(port: int | None, **more: str) -> AsyncGenerator[dict[str, Any]]:
    """Yield the definition of a server whose tools ask; with a port, it is run there."""
    command = [str(environment() / "python"), "-c", FORMS]
    if port is None:
        yield {**local(*command), **more}
        return
    with listening([*command, str(port)], port):
        yield {"type": "remote", "url": f"http://127.0.0.1:{port}/mcp", **more}


async def used(
    tmp_path: Path, definition: dict[str, Any], transport: str, tool: str, **given: Any
) -> str:
    """Return what a tool answers, and check how the server was reached."""
    async with world(tmp_path, {"p": definition}) as it:
        work = it.ctx.workspace.directory
        await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(work)], check=True)
        if "repo_path" in given:  # the server does not start in the project
            given["repo_path"] = str(work)
        listing = await it.server().connect()
        assert listing.transport == transport
        return (await it.call(tool, **given)).output


@pytest.mark.parametrize(
    ("package", "words", "tool", "given", "says"),
    [
        ("server-everything", ["stdio"], "echo", {"message": "hi"}, "Echo: hi"),
        ("server-filesystem", ["."], "list_directory", {"path": "."}, "[DIR] .git"),
        ("server-memory", [], "search_nodes", {"query": "Ada"}, '"entities": []'),
        (
            "server-sequential-thinking",
            [],
            "sequentialthinking",
            {"thought": "So?", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
            '"thoughtNumber": 1',
        ),
    ],
)
async def test_a_program_from_npm(
    tmp_path: Path, package: str, words: list[str], tool: str, given: dict[str, Any], says: str
) -> None:
    main = published() / "@modelcontextprotocol" / package / "dist" / "index.js"
    assert says in await used(tmp_path, local("node", main, *words), "stdio", tool, **given)


@pytest.mark.parametrize(
    ("program", "tool", "given", "says"),
    [
        ("mcp-server-git", "git_status", {"repo_path": "."}, "No commits yet"),
        ("mcp-server-time", "get_current_time", {"timezone": "Europe/Paris"}, "Europe/Paris"),
    ],
)
async def test_a_program_in_python(
    tmp_path: Path, program: str, tool: str, given: dict[str, Any], says: str
) -> None:
    assert says in await used(tmp_path, local(environment() / program), "stdio", tool, **given)


async def test_a_server_without_all_of_its_handlers_keeps_its_tools(tmp_path: Path) -> None:
    # Says that it has resources, and can't list their templates.
    program = environment("older.txt") / "mcp-server-sqlite"
    database = tmp_path / "notes.db"
    made = await used(
        tmp_path,
        local(program, "--db-path", database),
        "stdio",
        "create_table",
        query="CREATE TABLE note (id INTEGER)",
    )
    assert "Table created" in made


async def test_the_fetch_server_gives_a_page(tmp_path: Path, page: str) -> None:
    program = local(
        environment() / "mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"
    )
    assert "Buy milk" in await used(tmp_path, program, "stdio", "fetch", url=page)


async def test_a_browser_opens_a_page(tmp_path: Path, page: str) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no chromium on the PATH")
    options = ["--headless", "--isolated", "--no-sandbox", "--executable-path", browser]
    program = local("node", published() / "@playwright" / "mcp" / "cli.js", *options)
    assert "Page Title: Notes" in await used(
        tmp_path, program, "stdio", "browser_navigate", url=page
    )


@pytest.mark.parametrize(
    ("kind", "path", "transport"), [("streamableHttp", "mcp", "http"), ("sse", "sse", "sse")]
)
async def test_everything_over_http(
    tmp_path: Path, port: int, kind: str, path: str, transport: str
) -> None:
    main = published() / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    with listening(["node", str(main), kind], port, PORT=str(port)):
        address = {"type": "remote", "url": f"http://127.0.0.1:{port}/{path}"}
        assert "Echo: hi" in await used(tmp_path, address, transport, "echo", message="hi")


@pytest.mark.parametrize(
    ("kind", "path", "transport"), [("http", "mcp", "http"), ("sse", "sse", "sse")]
)
async def test_fastmcp_over_http(
    tmp_path: Path, port: int, kind: str, path: str, transport: str
) -> None:
    with listening(fast(kind, port), port):
        address = {"type": "remote", "url": f"http://127.0.0.1:{port}/{path}"}
        assert await used(tmp_path, address, transport, "add", a=1, b=2) == "3"


def test_fastmcp_behind_its_provider_is_signed_in_at(tmp_path: Path, port: int) -> None:
    desk = Desk(tmp_path)
    desk.configure(share="disabled")
    with listening(fast("oauth", port), port):
        added = desk.run("mcp", "add", "p", f"http://127.0.0.1:{port}/mcp")
        assert "p wants you to sign in" in added.stdout, added.stderr
        running = desk.start("mcp", "auth", "p", "--no-browser")
        assert running.stdout is not None
        running.stdout.readline()
        opened(running.stdout.readline().strip())
        said, errors = running.communicate(timeout=60)
        assert said.startswith("Signed in. p (fast"), errors
        out = desk.run("mcp", "logout", "p")
        assert out.stdout == "Signed out at p; its provider has ended the sign-in.\n"


async def answered(it: World, tool: str, *answers: str) -> str:
    """Call a tool that asks, answer its questions, and return what the tool answered."""
    calling = asyncio.create_task(it.call(tool))
    await wait_until(lambda: calling.done() or it.ctx.store.list_pending_questions())
    for request in it.ctx.store.list_pending_questions():
        given = [[each] for each in answers]
        reply = QuestionAnswers(session_id=request.session_id, request_id=request.id, answers=given)
        it.ctx.store.append(QuestionReplied(properties=reply))
    return (await calling).output


@pytest.mark.parametrize("is_remote", [False, True])
async def test_forms_of_fastmcp_in_the_version_that_is_named(
    tmp_path: Path, port: int, is_remote: bool
) -> None:
    served = forms(port if is_remote else None, protocol="2025-11-25")
    async with served as definition, world(tmp_path, {"p": definition}) as it:
        for _ in range(2):
            assert await answered(it, "greet", "Ada", "36") == "hello Ada, 36"


@pytest.mark.parametrize("is_remote", [False, True])
async def test_forms_of_fastmcp_in_the_newest_version(
    tmp_path: Path, port: int, is_remote: bool
) -> None:
    async with forms(port if is_remote else None) as definition:
        async with world(tmp_path, {"p": definition}) as it:
            for _ in range(2):
                assert await answered(it, "greet_in_rounds", "Ada") == "hello Ada"
            with pytest.raises(
                ToolFailure,
                match="spoken to in an older version of the protocol, in which it can ask",
            ):
                await answered(it, "greet")
            for _ in range(2):
                assert await answered(it, "greet", "Ada", "36") == "hello Ada, 36"
        async with world(
            tmp_path, {"p": definition}
        ) as it:  # another process does not have to find that out
            assert await answered(it, "greet", "Ada", "36") == "hello Ada, 36"
