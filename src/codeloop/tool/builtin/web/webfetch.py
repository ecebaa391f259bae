"""The tool `webfetch`: fetches a web page and converts it for the model."""

import base64
import os
import re
from typing import Annotated

from msgspec import Meta

from codeloop.schema.ids import new_id
from codeloop.schema.limits import WEB_ERROR, WEB_TIMEOUT, WEB_TIMEOUT_MAX
from codeloop.schema.part import FilePart
from codeloop.schema.wire import JSON, Wire
from codeloop.tool.json_schema import UNSENT
from codeloop.tool.tool import CONCURRENT_TRAITS, ToolContext, ToolFailure, ToolResult, tool
from codeloop.tool.web.fetch import FetchRequest, FetchResponse, Network, fetch_url
from codeloop.tool.web.page import Page, PageFormat, PageSource, convert_page, extract_error_text

ACCEPT_HEADERS: dict[PageFormat, str] = {
    "markdown": "text/markdown,text/html;q=0.9,application/xhtml+xml;q=0.9,text/plain;q=0.8,*/*;q=0.5",
    "text": "text/plain,text/markdown;q=0.9,text/html;q=0.8,application/xhtml+xml;q=0.8,*/*;q=0.5",
    "html": "text/html,application/xhtml+xml,text/plain;q=0.7,*/*;q=0.5",
}
_STATUS_HINTS = {
    401: "It requires a login, which this tool does not have.",
    403: "It refuses automated requests or requires a login.",
    404: "Check the address, or search for the page.",
    429: "Too many requests; wait before trying again.",
}
# Matches a host without a scheme: models sometimes leave it out.
_BARE_HOST = r"(?a)(localhost|[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?:[/?#]|$)"


class WebfetchParams(Wire):
    """Arguments of the tool `webfetch`."""

    url: Annotated[str, Meta(min_length=1)]
    format: Annotated[PageFormat, Meta(extra_json_schema=UNSENT)] = "markdown"
    timeout: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=WEB_TIMEOUT_MAX.seconds,
                description="seconds, default 30",
                extra_json_schema=UNSENT,
            ),
        ]
        | None
    ) = None


@tool("webfetch", params=WebfetchParams, traits=CONCURRENT_TRAITS)
async def webfetch(params: WebfetchParams, ctx: ToolContext) -> ToolResult:
    """Fetch a page, and return it as markdown, text or HTML, or a picture as an attachment."""
    arguments: JSON = {"url": params.url, "format": params.format}
    arguments |= {"timeout": params.timeout} if params.timeout is not None else {}
    seconds = min(params.timeout or WEB_TIMEOUT.seconds, WEB_TIMEOUT_MAX.seconds)
    request = FetchRequest(
        url=_complete_url(params.url, ctx),
        accept=ACCEPT_HEADERS[params.format],
        seconds=seconds,
        arguments=arguments,
    )
    response = await fetch_url(request, ctx.ask, Network(ctx.workspace.environment))
    content_type = response.headers.get("content-type", "")
    source = PageSource(response.url, content_type, response.data, is_cut=response.is_cut)
    metadata: JSON = {
        "url": response.url,
        "status": response.status,
        "contentType": content_type,
        "bytes": len(response.data),
        "truncated": response.is_cut,
    }
    if not 200 <= response.status < 300:
        text = await extract_error_text(source, ctx.workspace.environment, response.seconds_left)
        raise ToolFailure(_describe_failure(response, text), metadata)
    try:
        page = await convert_page(
            source, params.format, ctx.workspace.environment, response.seconds_left
        )
    except ToolFailure as error:
        raise ToolFailure(str(error), metadata, advice=error.advice) from None
    notes = [*response.notes, *([page.note] if page.note else [])]
    metadata |= {"notes": notes} if notes else {}
    title = f"{params.url} ({content_type or 'no type'})"
    output = "".join(f"[Note: {note}]\n" for note in notes) + (page.text or "(The page is empty)")
    return ToolResult(title, output, metadata, _attach_image(ctx, page, response))


def _complete_url(url: str, ctx: ToolContext) -> str:
    """Return a URL, with a scheme if it begins with a host.
    Raises ToolFailure if it is a path in the project.
    """
    name = url.strip()
    if "://" in name or "\0" in name:
        return url
    is_inside = not name.startswith(("/", "~")) and ".." not in name
    if is_inside and os.path.lexists(ctx.workspace.directory / name):
        kind = "folder" if (ctx.workspace.directory / name).is_dir() else "file"
        raise ToolFailure(f"{name} is a {kind} here.", advice="Use the read tool for it.")
    host = re.match(_BARE_HOST, name)
    return (
        f"{'http' if host[1] in {'localhost', '127.0.0.1'} else 'https'}://{name}" if host else url
    )


def _describe_failure(response: FetchResponse, body_text: str) -> str:
    """Return the error for the model: the status, a hint for it, and the start of the page."""
    from http import HTTPStatus

    # Servers may leave out the reason.
    reason = response.reason or next(
        (s.phrase for s in HTTPStatus if s.value == response.status), ""
    )
    excerpt = (
        body_text if len(body_text) <= WEB_ERROR.value else body_text[: WEB_ERROR.value] + "..."
    )
    retry_after = response.headers.get("retry-after", "")
    parts = [
        f"{response.url} answered with the status {response.status} {reason}".strip() + ".",
        _STATUS_HINTS.get(response.status, ""),
        f"It says to try again after {retry_after[:40]}." if retry_after else "",
        f"It says: {excerpt}" if excerpt else "",
    ]
    return " ".join(part for part in parts if part)


def _attach_image(ctx: ToolContext, page: Page, response: FetchResponse) -> tuple[FilePart, ...]:
    """Return the attachment for a page that is an image; none for other pages."""
    image = page.image
    if image is None:
        return ()
    name = response.url.partition("?")[0].rstrip("/").rpartition("/")[2]
    url = f"data:{image.mime};base64,{base64.b64encode(image.data).decode()}"
    part = FilePart(
        id=new_id("prt"),
        session_id=ctx.session_id,
        message_id=ctx.message_id,
        mime=image.mime,
        url=url,
        filename=name,
    )
    return (part,)
