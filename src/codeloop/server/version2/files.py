"""Handlers of version 2: a file's bytes, read and written."""

import asyncio
import mimetypes

from starlette.requests import Request
from starlette.responses import Response

from codeloop.app.handlers.workspace.files import load_file, resolve_inside
from codeloop.schema.wire import JSON
from codeloop.server.requests import read_body
from codeloop.server.version2 import arguments as takes
from codeloop.server.version2.request import Request2, TaggedError, make_refusal
from codeloop.workspace.files.atomic_write import Replacement, replace_file
from codeloop.workspace.files.safe_open import read_file_if_exists


async def read_file(request: Request2, args: takes.ReadFile2) -> Response:
    """Return a file's bytes."""
    _, content = await asyncio.to_thread(load_file, await request.get_project(), args.path)
    if content is None:
        raise TaggedError(
            "RemoteFileNotFoundError", 404, f"File not found: {args.path}", path=args.path
        )
    media_type = mimetypes.guess_type(args.path)[0] or "application/octet-stream"
    return Response(content, media_type=media_type)


async def write_body(request: Request2, http: Request) -> JSON:
    """Write the body of a request to a file of the project; folders that are missing are made."""
    path = http.query_params.get("path", "")
    if not path:
        raise make_refusal('Missing key\n  at ["path"]')
    project = await request.get_project()
    target = resolve_inside(project, path)
    content = await read_body(http)

    def write() -> None:
        target.real.parent.mkdir(parents=True, exist_ok=True)
        replace_file(Replacement(target.real, read_file_if_exists(target.real), content))

    async with project.workspace.read_log.get_lock(target.real):
        try:
            await asyncio.to_thread(write)
        except OSError as error:
            raise make_refusal(f"{path} can't be written: {error.strerror}.") from error
    return {"path": path}
