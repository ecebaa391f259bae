"""The tool webfetch, through the toolbox, against a real server on loopback (which
the context's answers allow).
"""

import base64
from pathlib import Path

import pytest

from codeloop.permission.gate import Denied
from codeloop.tool.builtin.web.webfetch import webfetch
from codeloop.tool.tool import ToolFailure, ToolResult
from codeloop.tool.toolbox import InvalidToolCall, PreparedCall, Toolbox
from tests.tool.context import TestContext, make_context
from tests.tool.web.pages import pdf, png
from tests.tool.web_server import answer, json_answer, redirect, serving

HTML = "<html><body><h1>Hi</h1><p>a <a href='/b'>b</a></p><script>x()</script></body></html>"


async def call(ctx: TestContext, arguments: str) -> ToolResult:
    prepared = Toolbox((webfetch,)).prepare("webfetch", arguments)
    assert isinstance(prepared, PreparedCall)
    return await webfetch.run(prepared.params, ctx)


async def test_a_page_is_given_as_markdown_with_what_a_client_shows(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    page = answer(HTML, "text/html; charset=utf-8")
    async with serving({"/a": redirect("/page"), "/page": page}) as server:
        result = await call(ctx, f'{{"url": "{server.url}/a"}}')
    assert result.title == f"{server.url}/a (text/html; charset=utf-8)"
    assert result.output == f"# Hi\n\na [b]({server.url}/b)"
    assert result.metadata == {
        "url": f"{server.url}/page",
        "status": 200,
        "contentType": "text/html; charset=utf-8",
        "bytes": len(HTML),
        "truncated": False,
    }
    assert "text/markdown" in server.requests[0].headers["accept"]


async def test_the_questions_name_the_url_and_the_private_host(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    async with serving({"/": answer("x", "text/plain")}) as server:
        await call(ctx, f'{{"url": "{server.url}/", "format": "text", "timeout": 60}}')
    private, public = ctx.asked
    assert (public.permission, public.patterns, public.always) == (
        "webfetch",
        (f"{server.url}/",),
        ("*",),
    )
    assert public.metadata == {"url": f"{server.url}/", "format": "text", "timeout": 60}
    target = (f"127.0.0.1:{server.port}",)
    assert (private.permission, private.patterns, private.always) == (
        "webfetch_private",
        target,
        target,
    )
    assert private.metadata == {"url": f"{server.url}/", "address": "127.0.0.1 (loopback)"}


@pytest.mark.parametrize("deny", ["webfetch", "webfetch_private", "webfetch:http://127.*"])
async def test_what_is_denied_is_never_requested(tmp_path: Path, deny: str) -> None:
    async with serving({"/": answer("x")}) as server:
        with pytest.raises(Denied):
            await call(make_context(tmp_path, deny=(deny,)), f'{{"url": "{server.url}/"}}')
    assert server.connections == 0


async def test_text_html_and_json_are_given_as_asked(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    async with serving({"/": answer(HTML), "/json": json_answer({"a": 1})}) as server:
        assert (await call(ctx, f'{{"url": "{server.url}/", "format": "html"}}')).output == HTML
        assert (
            await call(ctx, f'{{"url": "{server.url}/", "format": "text"}}')
        ).output == "Hi\n\na b"
        assert (await call(ctx, f'{{"url": "{server.url}/json"}}')).output == '{"a": 1}'
    assert server.requests[0].headers["accept"].startswith("text/html")


async def test_a_picture_is_attached(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    async with serving({"/i/pic.png": answer(png(), "image/png")}) as server:
        result = await call(ctx, f'{{"url": "{server.url}/i/pic.png?size=1"}}')
    (part,) = result.attachments
    assert (part.mime, part.filename, part.message_id) == ("image/png", "pic.png", ctx.message_id)
    assert base64.b64decode(part.url.removeprefix("data:image/png;base64,")) == png()
    assert "Image attached" in result.output


async def test_a_pdf_is_read(tmp_path: Path) -> None:
    async with serving({"/p.pdf": answer(pdf("Hello PDF"), "application/pdf")}) as server:
        result = await call(make_context(tmp_path), f'{{"url": "{server.url}/p.pdf"}}')
    assert result.output == "[Page 1]\nHello PDF"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            answer("<h1>No such page</h1>", status="404 Not Found"),
            "status 404 Not Found. Check the address",
        ),
        (answer("<h1>No such page</h1>", status="404 Not Found"), "It says: No such page"),
        (answer("", status="500 Internal Server Error"), "status 500 Internal Server Error."),
        (answer("", status="503 "), "status 503 Service Unavailable."),
        (answer("", status="429 Too Many Requests", retry_after="7"), "try again after 7."),
        (answer("x" * 9000, "text/plain", status="403 Forbidden"), "x" * 500 + "..."),
        (answer(png(), "image/png", status="401 Unauthorized"), "requires a login"),
        (answer("", status="304 Not Modified"), "status 304 Not Modified."),
    ],
)
async def test_an_error_status_is_a_failure_that_says_it(
    tmp_path: Path, raw: bytes, said: str
) -> None:
    async with serving({"/x": raw}) as server:
        with pytest.raises(ToolFailure) as caught:
            await call(make_context(tmp_path), f'{{"url": "{server.url}/x"}}')
    assert said in str(caught.value)
    assert caught.value.metadata is not None
    assert str(caught.value.metadata["status"]) in str(caught.value)


async def test_an_empty_page_and_a_cut_one_say_so(tmp_path: Path) -> None:
    big = answer("y" * 6_000_000, "text/plain")
    async with serving({"/": answer("", status="204 No Content"), "/big": big}) as server:
        assert (
            await call(make_context(tmp_path), f'{{"url": "{server.url}/"}}')
        ).output == "(The page is empty)"
        cut = await call(make_context(tmp_path), f'{{"url": "{server.url}/big"}}')
    assert cut.output.startswith("[Note: only the first 5 MB were read]\nyyy")
    assert (cut.metadata["truncated"], cut.metadata["bytes"]) == (True, 5 * 1024 * 1024)


async def test_binary_is_refused_with_its_type_in_the_metadata(tmp_path: Path) -> None:
    async with serving({"/z": answer(b"PK\3\4\0\0", "application/zip")}) as server:
        with pytest.raises(ToolFailure, match="application/zip, 6 bytes") as caught:
            await call(make_context(tmp_path), f'{{"url": "{server.url}/z"}}')
    assert caught.value.metadata is not None
    assert caught.value.metadata["contentType"] == "application/zip"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x/", "no url", "http://a:b@example.com/"]
)
async def test_what_is_no_web_address_is_refused_before_anybody_is_asked(
    tmp_path: Path, url: str
) -> None:
    ctx = make_context(tmp_path)
    with pytest.raises(ToolFailure, match="can't be fetched"):
        await call(ctx, f'{{"url": "{url}"}}')
    assert ctx.asked == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("{}", "url"),
        ('{"url": ""}', "url"),
        ('{"url": 3.5}', "url"),
        ('{"url": "https://x.test", "format": "pdf"}', "format"),
        ('{"url": "https://x.test", "timeout": 0}', "timeout"),
        ('{"url": "https://x.test", "timeout": -1}', "timeout"),
        ('{"url": "https://x.test", "timeout": "soon"}', "timeout"),
    ],
)
def test_a_bad_argument_is_named(arguments: str, named: str) -> None:
    invalid = Toolbox((webfetch,)).prepare("webfetch", arguments)
    assert isinstance(invalid, InvalidToolCall)
    assert f"$.{named}" in invalid.reason or f"field `{named}`" in invalid.reason


def test_the_description_is_short() -> None:
    assert len(webfetch.description) <= 350
