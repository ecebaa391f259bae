"""The ASGI application: all routes, and the answers to unknown paths and methods."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from codeloop.app.app import App
from codeloop.server.events.hub import Hub
from codeloop.server.events.routes import streams
from codeloop.server.openapi.document import DOCUMENT
from codeloop.server.pty_socket import terminal_routes
from codeloop.server.responses import make_not_found, make_wrong_method
from codeloop.server.routes import routes

if TYPE_CHECKING:
    from codeloop.server.web_dir import WebApp


def make_site(app: App, hub: Hub, pages: Sequence[BaseRoute] = (), web_dir: Path | None = None) -> Starlette:
    """Return the application for an App, whose events the hub streams.

    `pages`: the routes of the browser UI. `web_dir`: the files of a web app, served where no route matches.
    """
    web_app = _load_web_app(web_dir) if web_dir is not None else None

    async def answer_missing(request: Request, _error: Exception) -> Response:
        response = await web_app.find_response(request) if web_app is not None else None
        return response or make_not_found(request.url.path)

    served_routes = [*routes(app), *streams(app, hub), *terminal_routes(app), DOCUMENT, *pages]
    site_app = Starlette(routes=served_routes, exception_handlers={404: answer_missing, 405: _answer_wrong_method})
    site_app.router.redirect_slashes = False  # a path with a slash at its end is another path, and unknown
    return site_app


def _load_web_app(folder: Path) -> "WebApp":
    # Few servers have a web app, so it is not loaded at every start.
    from codeloop.server.web_dir import WebApp

    return WebApp(folder)


async def _answer_wrong_method(request: Request, _error: Exception) -> Response:
    response = make_wrong_method(request.url.path, request.method)
    # PARTIAL: the path matches, the method does not. The first path counts, as it would for a request.
    matching = [route for route in request.app.routes if route.matches(request.scope)[0] is Match.PARTIAL]
    same_path = [route for route in matching if route.path == matching[0].path]
    response.headers["allow"] = ", ".join(sorted({method for route in same_path for method in route.methods}))
    return response
