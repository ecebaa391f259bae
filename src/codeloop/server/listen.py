"""Listening: binds the socket, runs the site on it, and ends in order."""

import sys

import uvicorn

from codeloop.app.app import App
from codeloop.app.project import Startup
from codeloop.server.site import site


async def serve(startup: Startup, host: str, port: int) -> None:
    """Serve until a signal ends it."""
    app = App(startup)
    config = uvicorn.Config(
        site(app), host=host, port=port, http="httptools", ws="websockets-sansio", lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    try:
        sys.stdout.write(f"opencode server listening on http://{host}:{port}\n")
        sys.stdout.flush()
        await server.serve()
    finally:
        await app.close()
