"""The whole site as one ASGI application: routes, streams, and what stands before them."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from codeloop.app.app import App
from codeloop.server.events.hub import Hub
from codeloop.server.events.routes import streams
from codeloop.server.openapi.document import DOCUMENT
from codeloop.server.pty_socket import terminal_routes
from codeloop.server.responses import make_not_found, wrong_method
from codeloop.server.routes import routes


def site(app: App, hub: Hub, pages: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the application for an App, whose events the hub streams; `pages`: the routes of the browser UI."""
    served = [*routes(app), *streams(app, hub), *terminal_routes(app), DOCUMENT, *pages]
    found = Starlette(routes=served, exception_handlers={404: _missing, 405: _method})
    found.router.redirect_slashes = False  # a path with one more is another path
    return found


async def _missing(request: Request, _error: Exception) -> Response:
    return make_not_found(request.url.path)


async def _method(request: Request, _error: Exception) -> Response:
    response = wrong_method(request.url.path, request.method)
    fitting = [route for route in request.app.routes if route.matches(request.scope)[0] is Match.PARTIAL]
    same = [route for route in fitting if route.path == fitting[0].path]
    response.headers["allow"] = ", ".join(sorted({method for route in same for method in route.methods}))
    return response
