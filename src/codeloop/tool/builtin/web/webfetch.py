"""The tool `webfetch`: a page of the web."""

import base64
import os
import re
from typing import Annotated

from msgspec import Meta

from codeloop.schema.ids import new_id
from codeloop.schema.limits import WEB_ERROR, WEB_TIMEOUT, WEB_TIMEOUT_MAX
from codeloop.schema.part import FilePart
from codeloop.schema.wire import JSON, Wire
from codeloop.tool.tool import READ_ONLY, ToolContext, ToolFailure, ToolResult, tool
from codeloop.tool.web.fetch import FetchRequest, FetchResponse, Network, fetch
from codeloop.tool.web.page import Format, Page, PageSource, convert, plain_text

ACCEPTED: dict[Format, str] = {
    "markdown": "text/markdown,text/html;q=0.9,application/xhtml+xml;q=0.9,text/plain;q=0.8,*/*;q=0.5",
    "text": "text/plain,text/markdown;q=0.9,text/html;q=0.8,application/xhtml+xml;q=0.8,*/*;q=0.5",
    "html": "text/html,application/xhtml+xml,text/plain;q=0.7,*/*;q=0.5",
}
HINTS = {
    401: "It requires a login, which this tool does not have.",
    403: "It refuses automated requests or requires a login.",
    404: "Check the address, or search for the page.",
    429: "Too many requests; wait before trying again.",
}
_HOST = re.compile(r"(localhost|[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?:[/?#]|$)", re.ASCII)


class WebfetchParams(Wire):
    """What the model passes."""

    url: Annotated[str, Meta(min_length=1)]
    format: Format = "markdown"
    timeout: Annotated[float, Meta(gt=0, le=WEB_TIMEOUT_MAX.seconds, description="seconds, default 30")] | None = None


@tool("webfetch", params=WebfetchParams, traits=READ_ONLY)
async def webfetch(params: WebfetchParams, ctx: ToolContext) -> ToolResult:
    """Return a page as markdown, text or HTML, or a picture as an attachment."""
    given: JSON = {"url": params.url, "format": params.format}
    given |= {"timeout": params.timeout} if params.timeout is not None else {}
    seconds = min(params.timeout or WEB_TIMEOUT.seconds, WEB_TIMEOUT_MAX.seconds)
    wanted = FetchRequest(_address(params.url, ctx), ACCEPTED[params.format], seconds, given)
    fetched = await fetch(wanted, ctx.ask, Network(ctx.workspace.environment))
    content_type = fetched.headers.get("content-type", "")
    source = PageSource(fetched.url, content_type, fetched.data, fetched.is_cut)
    metadata: JSON = {
        "url": fetched.url,
        "status": fetched.status,
        "contentType": content_type,
        "bytes": len(fetched.data),
        "truncated": fetched.is_cut,
    }
    if not 200 <= fetched.status < 300:
        raise ToolFailure(
            _failure(fetched, await plain_text(source, ctx.workspace.environment, fetched.seconds_left)), metadata
        )
    try:
        page = await convert(source, params.format, ctx.workspace.environment, fetched.seconds_left)
    except ToolFailure as error:
        raise ToolFailure(str(error), metadata, advice=error.advice) from None
    notes = [*fetched.notes, *([page.note] if page.note else [])]
    metadata |= {"notes": notes} if notes else {}
    title = f"{params.url} ({content_type or 'no type'})"
    output = "".join(f"[Note: {note}]\n" for note in notes) + (page.text or "(The page is empty)")
    return ToolResult(title, output, metadata, _attach_image(ctx, page, fetched))


def _address(url: str, ctx: ToolContext) -> str:
    """Return the address with the scheme that a host without one has. Raises ToolFailure for a file."""
    name = url.strip()
    if "://" in name or "\0" in name:
        return url
    is_inside = not name.startswith(("/", "~")) and ".." not in name
    if is_inside and os.path.lexists(ctx.workspace.directory / name):
        raise ToolFailure(f"{name} is a file here.", advice="Use the read tool for it.")
    host = _HOST.match(name)
    return f"{'http' if host[1] in {'localhost', '127.0.0.1'} else 'https'}://{name}" if host else url


def _failure(fetched: FetchResponse, said: str) -> str:
    from http import HTTPStatus

    reason = fetched.reason or next((s.phrase for s in HTTPStatus if s.value == fetched.status), "")
    said = said if len(said) <= WEB_ERROR.value else said[: WEB_ERROR.value] + "..."
    after = fetched.headers.get("retry-after", "")
    parts = [
        f"{fetched.url} answered with the status {fetched.status} {reason}".strip() + ".",
        HINTS.get(fetched.status, ""),
        f"It says to try again after {after[:40]}." if after else "",
        f"It says: {said}" if said else "",
    ]
    return " ".join(part for part in parts if part)


def _attach_image(ctx: ToolContext, page: Page, fetched: FetchResponse) -> tuple[FilePart, ...]:
    picture = page.image
    if picture is None:
        return ()
    name = fetched.url.partition("?")[0].rstrip("/").rpartition("/")[2]
    url = f"data:{picture.mime};base64,{base64.b64encode(picture.data).decode()}"
    part = FilePart(
        id=new_id("prt"),
        session_id=ctx.session_id,
        message_id=ctx.message_id,
        mime=picture.mime,
        url=url,
        filename=name,
    )
    return (part,)
