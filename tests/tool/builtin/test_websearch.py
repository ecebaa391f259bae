"""websearch and codesearch, against real servers that speak each service's protocol."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from codeloop.app.toolbox import find_search_tools
from codeloop.permission.gate import Denied
from codeloop.schema.config import SearchConfig
from codeloop.tool.search_providers import PROVIDERS, SEARCH_KEY_VARIABLES
from codeloop.tool.tool import Tool, ToolFailure, ToolResult
from codeloop.tool.toolbox import InvalidToolCall, PreparedCall, Toolbox
from codeloop.tool.web.json_search import search_tavily
from codeloop.tool.web.search_service import SearchService
from tests.tool.context import TestContext, make_context
from tests.tool.web_server import Answer, Request, answer, json_answer, redirect, serving

KEY = "sk-very-secret"
Name = Literal["exa", "tavily", "brave", "searxng"]


def tools(
    provider: Name, url: str, key: str | None = KEY, environment: Mapping[str, str] | None = None
) -> list[Tool]:
    return list(
        find_search_tools(
            SearchConfig(provider=provider, base_url=url, api_key=key), environment or {}
        )
    )


async def call(tool: Tool, ctx: TestContext, **arguments: Any) -> ToolResult:
    prepared = Toolbox((tool,)).prepare(tool.name, json.dumps(arguments))
    assert isinstance(prepared, PreparedCall)
    return await tool.run(prepared.params, ctx)


class Exa:
    """An MCP server over streamable HTTP. `stream`: it answers with server-sent events."""

    def __init__(
        self, *, stream: bool = False, session: str = "", result: Any = None, error: Any = None
    ) -> None:
        self.stream, self.session, self.error = stream, session, error
        text = "Title: One\nURL: https://one.test\nText: first\n\nTitle: Two\nURL: https://two.test\nText: second"
        self.result = result or {"content": [{"type": "text", "text": text}]}
        self.closed = asyncio.Event()

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if request.method == "DELETE":
            writer.write(answer("", status="405 Method Not Allowed"))
            return
        message = request.json
        assert message["jsonrpc"] == "2.0"
        assert request.headers["accept"] == "application/json, text/event-stream"
        match message["method"]:
            case "initialize":
                assert message["params"]["clientInfo"]["name"] == "codeloop"
                extra = {"Mcp-Session-Id": self.session} if self.session else {}
                given = {
                    "protocolVersion": "2025-03-26",
                    "capabilities": {},
                    "serverInfo": {"name": "x"},
                }
                await self.reply(writer, {"id": message["id"], "result": given}, extra)
            case "notifications/initialized":
                assert "id" not in message
                self.check(request)
                writer.write(answer("", "", status="202 Accepted"))
            case "tools/call":
                self.check(request)
                key, value = ("error", self.error) if self.error else ("result", self.result)
                await self.reply(writer, {"id": message["id"], key: value}, {})
            case other:
                raise AssertionError(other)

    def check(self, request: Request) -> None:
        assert request.headers["mcp-protocol-version"] == "2025-03-26"
        assert request.headers.get("mcp-session-id", "") == self.session

    async def reply(
        self, writer: asyncio.StreamWriter, message: dict[str, Any], extra: dict[str, str]
    ) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message})
        headers = {name.replace("-", "_"): value for name, value in extra.items()}
        if not self.stream:
            writer.write(answer(data, "application/json", **headers))
            return
        lines = [
            "HTTP/1.1 200 OK",
            "Content-Type: text/event-stream",
            *(f"{n}: {v}" for n, v in extra.items()),
            "",
            "",
        ]
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        ping = json.dumps({"jsonrpc": "2.0", "id": message["id"], "method": "ping"})
        writer.write("\r\n".join(lines).encode())
        for piece in (
            ": hello\n\n",
            f"data: {note}\n\n",
            f"data: {ping}\n\n",
            f"event: message\nid: 1\ndata: {data}",
        ):
            writer.write(piece.encode())
            await writer.drain()
        writer.write(b"\r\n\r\n")
        # The stream stays open, as servers may leave it: the client hangs up
        # once it has its answer.
        await writer.drain()
        await self.closed.wait()


@pytest.mark.parametrize("stream", [False, True])
async def test_public_code_is_searched_without_a_key_as_the_service_speaks(
    tmp_path: Path, *, stream: bool
) -> None:
    text = (
        "Repository: octo/cat\nPath: src/a.py\nURL: https://github.com/octo/cat/blob/main/src/a.py\n"
        "License: MIT\n\nSnippets:\n--- Snippet 1 (Line 3) ---\nasyncio.timeout(5)\n"
    )
    service = Exa(stream=stream, session="s1", result={"content": [{"type": "text", "text": text}]})
    ctx = make_context(tmp_path)
    async with serving(service) as server:
        config = SearchConfig(code="grep_app", code_url=server.url)
        (code,) = find_search_tools(config, {})
        arguments = {
            "query": "asyncio.timeout(",
            "repository": "octo/cat",
            "language": "Python",
            "isRegexp": True,
        }
        found = await call(code, ctx, **arguments)
        service.closed.set()
    assert (found.output, found.metadata) == (
        text.strip(),
        {"provider": "grep_app", "results": 1, "truncated": False},
    )
    posted = [request.json for request in server.requests if request.method == "POST"]
    asked = [message["params"] for message in posted if message["method"] == "tools/call"]
    assert asked == [
        {
            "name": "searchGitHub",
            "arguments": {
                "query": "asyncio.timeout(",
                "repo": "octo/cat",
                "language": ["Python"],
                "useRegexp": True,
            },
        }
    ]
    assert all(
        "authorization" not in each.headers and "x-api-key" not in each.headers
        for each in server.requests
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("session", ["", "abc-1"])
async def test_exa_is_asked_by_mcp(tmp_path: Path, *, stream: bool, session: str) -> None:
    exa, ctx = Exa(stream=stream, session=session), make_context(tmp_path)
    async with serving(exa) as server:
        search, code = tools("exa", f"{server.url}/mcp", None)
        found = await call(search, ctx, query=" two words ", numResults=3)
        other = await call(code, ctx, query="asyncio timeout", tokens=2000)
        exa.closed.set()
    assert found.output.startswith("Title: One\nURL: https://one.test")
    assert (found.title, found.metadata) == (
        "two words",
        {"provider": "exa", "results": 2, "truncated": False},
    )
    assert other.output == found.output
    calls = [
        r.json["params"]
        for r in server.requests
        if r.method == "POST" and r.json["method"] == "tools/call"
    ]
    assert calls == [
        {"name": "web_search_exa", "arguments": {"query": "two words", "numResults": 3}},
        {
            "name": "get_code_context_exa",
            "arguments": {"query": "asyncio timeout", "tokensNum": 2000},
        },
    ]
    assert not any("x-api-key" in request.headers for request in server.requests)
    assert sum(request.method == "DELETE" for request in server.requests) == (2 if session else 0)
    assert [(need.permission, need.patterns, need.always) for need in ctx.asked] == [
        ("websearch", ("two words",), ("*",)),
        ("websearch", ("asyncio timeout",), ("*",)),
    ]


@pytest.mark.parametrize(
    ("exa", "said"),
    [
        (
            Exa(error={"code": -32602, "message": f"Tool not found, {KEY}"}),
            "refused tools/call: Tool not found, ***",
        ),
        (
            Exa(result={"isError": True, "content": [{"type": "text", "text": "rate limit"}]}),
            "rate limit",
        ),
        (Exa(result={"content": "x"}), "unknown form"),
    ],
)
async def test_what_exa_refuses_is_said_without_the_key(
    tmp_path: Path, exa: Exa, said: str
) -> None:
    async with serving(exa) as server:
        with pytest.raises(ToolFailure) as caught:
            await call(tools("exa", server.url)[0], make_context(tmp_path), query="x")
    assert said in str(caught.value)
    assert KEY not in str(caught.value)
    assert server.requests[0].headers["x-api-key"] == KEY


HITS = "1. One\nhttps://one.test (2026)\nfirst text\n\n2. https://two.test"


async def test_tavily_is_asked_with_its_key_as_bearer(tmp_path: Path) -> None:
    results: list[dict[str, Any]] = [
        {
            "title": "One",
            "url": "https://one.test",
            "content": "first\n text",
            "published_date": "2026",
            "score": 1,
        },
        {"title": None, "url": "https://two.test", "content": None},
        {"title": "Three", "url": "https://three.test", "content": "beyond what was asked for"},
    ]
    async with serving({"/search": json_answer({"query": "q", "results": results})}) as server:
        (search,) = tools("tavily", server.url)
        found = await call(search, make_context(tmp_path), query="q", numResults=2)
    assert (found.output, found.metadata["results"]) == (HITS, 2)
    (request,) = server.requests
    assert (request.method, request.headers["authorization"]) == ("POST", f"Bearer {KEY}")
    assert (request.json["query"], request.json["max_results"]) == ("q", 2)


async def test_brave_is_asked_with_its_key_in_its_header(tmp_path: Path) -> None:
    results: list[dict[str, Any]] = [
        {
            "title": "<strong>One</strong>",
            "url": "https://one.test",
            "description": "first",
            "age": "2026",
        },
        {"title": "", "url": "https://two.test"},
    ]
    results[0]["extra_snippets"] = ["te<b>x</b>t"]
    async with serving({"/web/search": json_answer({"web": {"results": results}})}) as server:
        (search,) = tools("brave", server.url)
        found = await call(search, make_context(tmp_path), query="ä & b", numResults=5)
    assert found.output == HITS
    (request,) = server.requests
    assert (
        request.target.startswith("/web/search?q=%C3%A4+%26+b&count=5")
        or "q=%C3%A4%20%26%20b" in request.target
    )
    assert request.headers["x-subscription-token"] == KEY


async def test_searxng_is_asked_for_json_below_its_address(tmp_path: Path) -> None:
    results: list[dict[str, Any]] = [
        {
            "title": "One",
            "url": "https://one.test",
            "content": "first text",
            "publishedDate": "2026",
        },
        {"title": "", "url": "https://two.test", "content": ""},
    ]
    async with serving({"/s/search": json_answer({"results": results})}) as server:
        (search,) = find_search_tools(None, {"SEARXNG_URL": f"{server.url}/s/"})
        found = await call(search, make_context(tmp_path), query="q")
    assert found.output == HITS
    assert "format=json" in server.requests[0].target
    assert "authorization" not in server.requests[0].headers


async def test_a_searxng_that_gives_no_json_says_what_to_set(tmp_path: Path) -> None:
    async with serving({"/search": answer("no", status="403 Forbidden")}) as server:
        with pytest.raises(ToolFailure, match=r"search\.formats"):
            await call(tools("searxng", server.url, None)[0], make_context(tmp_path), query="q")


# Each `?` is replaced by a byte that is not UTF-8.
BAD_HIT = {"title": "?", "url": "?"}
ALL: list[tuple[Name, str]] = [
    ("exa", ""),
    ("tavily", "/search"),
    ("brave", "/web/search"),
    ("searxng", "/search"),
]


@pytest.mark.parametrize(("provider", "path"), ALL)
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            answer(f"bad key {KEY}", status="401 Unauthorized"),
            "status 401 Unauthorized. The key is refused. bad key ***",
        ),
        (answer("slow down", status="429 Too Many Requests"), "Too many searches"),
        (redirect("https://elsewhere.test/"), "redirects"),
        (answer("<html>", "application/json"), "not JSON"),
        (
            json_answer(
                {"result": BAD_HIT, "results": [BAD_HIT], "web": {"results": [BAD_HIT]}}
            ).replace(b"?", b"\xff"),
            "not JSON",
        ),
        (answer("[1]", "application/json"), "not JSON-RPC|unknown form"),
        (b"", "can't be reached"),
        (answer("x" * 5_000_000, "application/json"), "more than"),
    ],
)
async def test_a_failing_service_is_a_clear_failure_without_the_key(
    tmp_path: Path, provider: Name, path: str, reply: Answer, said: str
) -> None:
    async with serving({path or "/mcp": reply}) as server:
        url = server.url if path else f"{server.url}/mcp"
        with pytest.raises(ToolFailure) as caught:
            await call(tools(provider, url)[0], make_context(tmp_path), query="q")
    assert any(words in str(caught.value) for words in said.split("|"))
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(("provider", "path"), ALL)
async def test_a_denied_search_never_leaves_the_machine(
    tmp_path: Path, provider: Name, path: str
) -> None:
    async with serving({}) as server:
        for tool in tools(provider, server.url):
            with pytest.raises(Denied):
                await call(tool, make_context(tmp_path, deny=("websearch",)), query="q")
    assert server.connections == 0


async def test_no_results_are_said(tmp_path: Path) -> None:
    async with serving({"/search": json_answer({"results": []})}) as server:
        found = await call(tools("tavily", server.url)[0], make_context(tmp_path), query="q")
    assert found.output == "No results. Try other words."


def test_without_a_choice_there_are_no_tools() -> None:
    assert find_search_tools(None, {}) == ()
    assert find_search_tools(None, {"TAVILY_API_KEY": "", "PATH": "/bin"}) == ()
    assert find_search_tools(SearchConfig(provider="none"), {"TAVILY_API_KEY": KEY}) == ()


@pytest.mark.parametrize(
    ("settings", "environment", "names"),
    [
        (SearchConfig(provider="exa"), {}, ["websearch", "codesearch"]),
        (None, {"EXA_API_KEY": "k"}, ["websearch", "codesearch"]),
        (None, {"TAVILY_API_KEY": "k"}, ["websearch"]),
        (None, {"BRAVE_SEARCH_API_KEY": "k"}, ["websearch"]),
        (SearchConfig(provider="searxng", base_url="http://localhost:1"), {}, ["websearch"]),
        (SearchConfig(code="grep_app"), {}, ["codesearch"]),
        (SearchConfig(provider="none", code="grep_app"), {"TAVILY_API_KEY": "k"}, ["codesearch"]),
        (SearchConfig(code="grep_app"), {"EXA_API_KEY": "k"}, ["websearch", "codesearch"]),
        (None, {"OPENCODE_ENABLE_EXA": "1"}, ["websearch", "codesearch"]),
    ],
)
def test_a_service_is_chosen_by_settings_or_key(
    settings: SearchConfig | None, environment: dict[str, str], names: list[str]
) -> None:
    assert [tool.name for tool in find_search_tools(settings, environment)] == names


def test_settings_are_read_from_configuration_by_their_names() -> None:
    raw = {"provider": "tavily", "baseURL": "https://t.test", "apiKey": "k"}
    assert msgspec.convert(raw, SearchConfig) == SearchConfig(
        provider="tavily", base_url="https://t.test", api_key="k"
    )


@pytest.mark.parametrize(
    ("provider", "named"), [("tavily", "TAVILY_API_KEY"), ("searxng", "SEARXNG_URL")]
)
async def test_a_service_that_lacks_its_key_or_address_says_so_when_called(
    tmp_path: Path, provider: Name, named: str
) -> None:
    (tool,) = find_search_tools(SearchConfig(provider=provider), {})
    with pytest.raises(ToolFailure, match=named):
        await call(tool, make_context(tmp_path), query="q")


async def test_a_key_of_the_environment_is_never_sent_to_another_address(tmp_path: Path) -> None:
    environment: dict[str, str] = dict.fromkeys(SEARCH_KEY_VARIABLES, KEY)
    assert len(SEARCH_KEY_VARIABLES) >= len([row for row in PROVIDERS if row.needs_key])
    async with serving(Exa()) as server:
        await call(
            tools("exa", server.url, None, environment)[0], make_context(tmp_path), query="q"
        )
        for provider in ("tavily", "brave"):
            with pytest.raises(ToolFailure, match="needs a key"):
                await call(
                    tools(provider, server.url, None, environment)[0],
                    make_context(tmp_path),
                    query="q",
                )
    assert not any(
        KEY in value for request in server.requests for value in request.headers.values()
    )


async def test_a_key_is_not_sent_in_the_clear(tmp_path: Path) -> None:
    (tool,) = tools("tavily", "http://search.test")
    with pytest.raises(ToolFailure, match="only sent over https"):
        await call(tool, make_context(tmp_path), query="q")


def test_a_service_is_shown_without_its_key() -> None:
    service = SearchService(
        "x", "X", "https://x.test", search_tavily, key=KEY, environment={"TAVILY_API_KEY": KEY}
    )
    assert KEY not in repr(service)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("{}", "query"),
        ('{"query": ""}', "query"),
        ('{"query": "x", "numResults": 21}', "numResults"),
    ],
)
def test_a_bad_argument_is_named(arguments: str, named: str) -> None:
    invalid = Toolbox(find_search_tools(SearchConfig(provider="exa"), {})).prepare(
        "websearch", arguments
    )
    assert isinstance(invalid, InvalidToolCall)
    assert f"$.{named}" in invalid.reason or f"field `{named}`" in invalid.reason


async def test_a_blank_or_endless_query_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    for query in ("  ", "x" * 2001):
        with pytest.raises(ToolFailure, match="query"):
            await call(tools("exa", "http://localhost:1")[0], ctx, query=query)
    assert ctx.asked == []


def test_the_descriptions_are_short() -> None:
    for tool in find_search_tools(SearchConfig(provider="exa"), {}):
        assert len(tool.description) <= 350
