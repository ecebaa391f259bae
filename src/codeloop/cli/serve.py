"""`codeloop serve`: lets other programs drive the agent over HTTP."""

import asyncio
from pathlib import Path

import click


@click.command()
@click.option("--hostname", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=4096, show_default=True, help="Port; 0: a free one.")
def serve(hostname: str, port: int) -> None:
    """Serve this directory, and any other that a client names, over HTTP until a signal ends it."""
    from codeloop.app.project import Startup
    from codeloop.server.listen import serve as listen

    asyncio.run(listen(Startup(directory=Path.cwd()), hostname, port))
