"""What a body becomes."""

import os
import resource
import time

import pytest

from codeloop.schema.limits import WEB_BYTES
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.page import Page, PageFormat, PageSource, convert_page, extract_error_text
from codeloop.tool.web.pdf import read_pdf
from tests.tool.web.pages import locked_pdf, pdf, png

URL = "https://example.com/docs/page"
HTML = """<html><head><title>T</title><style>.x{color:red}</style><script>alert("no")</script></head><body>
<nav><a href="/menu">menu</a></nav><header><h1>Head &amp; shoulders</h1></header>
<p>A <b>bold</b> <a href="next.html">link</a>, <a href="//other.org/x">other</a>.</p>
<noscript>switch it on</noscript>
<svg><text>drawn</text></svg><img src="pic.png" alt="pic"><img src="data:image/png;base64,AAA">
<pre><code class="language-py">def f():
    return 1 &lt; 2
</code></pre><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<form><p>inside a form</p></form></body></html>"""
ENVIRONMENT = {"PATH": os.defpath}


async def shown(data: bytes | str, kind: str, page_format: PageFormat = "markdown") -> Page:
    body = data.encode() if isinstance(data, str) else data
    return await convert_page(PageSource(URL, kind, body), page_format, ENVIRONMENT)


async def test_html_becomes_markdown_with_absolute_links_and_without_scripts() -> None:
    text = (await shown(HTML, "text/html; charset=utf-8")).text
    assert "# Head & shoulders" in text
    assert (
        "A **bold** [link](https://example.com/docs/next.html), [other](https://other.org/x)."
        in text
    )
    assert "![pic](https://example.com/docs/pic.png)" in text
    assert "```py\ndef f():\n    return 1 < 2\n```" in text
    assert "| 1 | 2 |" in text
    assert "inside a form" in text
    assert not [word for word in ("alert", "color:red", "menu", "drawn", "base64") if word in text]


async def test_html_becomes_text_without_marks() -> None:
    text = (await shown(HTML, "text/html", "text")).text
    assert "Head & shoulders" in text
    assert "A bold link, other." in text
    assert not [word for word in ("alert", "color:red", "**", "](", "<p>") if word in text]


async def test_html_stays_as_it_is_when_html_is_asked_for() -> None:
    assert (await shown(HTML, "text/html", "html")).text == HTML


@pytest.mark.parametrize("kind", ["", "application/octet-stream"])
async def test_html_without_a_type_is_known_by_its_beginning(kind: str) -> None:
    assert (await shown("\n<!DOCTYPE html><h1>x</h1>", kind)).text == "# x"


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "text/plain",
        "application/ld+json",
        "text/markdown",
        "application/x-yaml",
        "image/svg+xml",
        "",
    ],
)
async def test_other_text_is_given_as_it_is(kind: str) -> None:
    text = '{"a": "<b>é</b>"}\n'
    for form in ("markdown", "text", "html"):
        assert (await shown(text, kind, form)).text == text


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PK\x03\x04\0\0\0", "application/zip"),
        (b"\x7fELF\x02\x01\x01\0", "application/octet-stream"),
        (b"\0\0\0\x20ftypisom", "video/mp4"),
        (b"\0\1\2\3", "text/plain"),
        (b"BM\0\0\0\0", "image/bmp"),
    ],
)
async def test_other_binary_is_refused_by_type_and_size(data: bytes, kind: str) -> None:
    with pytest.raises(ToolFailure, match=rf"binary \({kind}, {len(data)} bytes\)"):
        await shown(data, kind)


async def test_html_that_is_nested_without_end_is_converted_as_far_as_it_goes() -> None:
    page = await shown("<div>" * 100_000 + "deep", "text/html")
    assert "nested too deeply" in page.note


@pytest.mark.slow
async def test_five_megabytes_of_html_are_converted() -> None:
    html = "<p>word <b>bold</b> <a href='x'>y</a></p>\n" * (WEB_BYTES.value // 42)
    page = await shown(html, "text/html")
    assert page.text.startswith("word **bold** [y](https://example.com/docs/x)")
    assert page.text.count("**bold**") == WEB_BYTES.value // 42


async def test_a_picture_is_attached_by_what_it_is_not_by_what_it_is_called() -> None:
    for kind in ("image/png", "text/html", ""):
        page = await shown(png(3, 2), kind)
        assert page.image is not None
        assert page.image.mime == "image/png"
        assert "3 x 2 pixels" in page.text


@pytest.mark.slow
async def test_a_broken_or_huge_picture_is_refused() -> None:
    with pytest.raises(ToolFailure, match="broken"):
        await shown(png()[:-12], "image/png")
    with pytest.raises(ToolFailure, match="90000 x 900 pixels"):
        await shown(png(90_000, 900), "image/png")


async def test_a_pdf_becomes_the_text_of_its_pages() -> None:
    page = await shown(pdf("Hello PDF", "Second page"), "application/octet-stream")
    assert page.text == "[Page 1]\nHello PDF\n\n[Page 2]\nSecond page"
    assert (page.encoding, page.note) == ("application/pdf", "")


@pytest.mark.slow
async def test_only_the_first_pages_of_a_long_pdf_are_read() -> None:
    page = await shown(pdf(*(f"page {number}" for number in range(1, 204))), "application/pdf")
    assert page.note == "200 of 203 pages were read"
    assert page.text.endswith("[Page 200]\npage 200")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (pdf("", ""), "2 pages without any text"),
        (pdf("x")[:200], "broken"),
        (b"%PDF-1.7\n" + b"\0" * 3000, "broken"),
    ],
)
async def test_a_pdf_that_has_no_text_to_give_says_why(data: bytes, why: str) -> None:
    with pytest.raises(ToolFailure, match=why):
        await shown(data, "application/pdf")


@pytest.mark.slow
async def test_an_encrypted_pdf_says_so_unless_its_password_is_empty() -> None:
    with pytest.raises(ToolFailure, match="encrypted with a password"):
        await shown(locked_pdf("hunter2"), "application/pdf")
    assert (await shown(locked_pdf(""), "application/pdf")).text == "[Page 1]\nsecret"


async def test_a_pdf_that_takes_too_long_is_given_up_and_leaves_no_process() -> None:
    from codeloop.kit.processes import list_processes

    mark = f"CODELOOP_TEST_PDF={os.getpid()}.{time.monotonic_ns()}"
    name, _, value = mark.partition("=")
    # No machine starts Python in so short a time.
    with pytest.raises(ToolFailure, match=r"took longer than 0 s"):
        await read_pdf(pdf("x"), {**ENVIRONMENT, name: value}, seconds=0.002)
    assert not [one for one in list_processes(mark) if one.has_marker]


@pytest.mark.slow
async def test_a_page_of_nested_quotes_ends_within_its_time_and_memory() -> None:
    from codeloop.kit.processes import list_processes

    name, value = "CODELOOP_TEST_PAGE", f"{os.getpid()}.{time.monotonic_ns()}"
    page = PageSource(URL, "text/html", (b"<blockquote>x" * 400_000)[: WEB_BYTES.value])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ToolFailure, match=r"can't be converted: that takes "):
        await convert_page(page, "markdown", {**ENVIRONMENT, name: value}, seconds=3)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024
    assert not [one for one in list_processes(f"{name}={value}") if one.has_marker]


async def test_an_error_page_is_converted_within_its_time_too() -> None:
    page = PageSource(URL, "text/html", b"<blockquote>x" * 400_000)
    assert await extract_error_text(page, ENVIRONMENT, seconds=0.2) == ""


async def test_what_is_cut_is_said_for_text_and_refused_for_documents() -> None:
    page = await convert_page(
        PageSource(URL, "text/plain", b"abc", is_cut=True), "text", ENVIRONMENT
    )
    assert page.note == "only the first 5 MB were read"
    for data in (pdf("x"), png()):
        with pytest.raises(ToolFailure, match="more than 5 MB"):
            await convert_page(PageSource(URL, "", data, is_cut=True), "text", ENVIRONMENT)


async def test_the_text_of_an_error_page_is_one_line_and_never_bytes() -> None:
    assert (
        await extract_error_text(
            PageSource(URL, "text/html", b"<h1>Not\nfound</h1><script>x()</script>"), ENVIRONMENT
        )
        == "Not found"
    )
    assert (
        await extract_error_text(PageSource(URL, "application/json", b'{"a":\n 1}'), ENVIRONMENT)
        == '{"a": 1}'
    )
    assert await extract_error_text(PageSource(URL, "image/png", png()), ENVIRONMENT) == ""
    assert (
        await extract_error_text(PageSource(URL, "application/zip", b"PK\0\0"), ENVIRONMENT) == ""
    )
