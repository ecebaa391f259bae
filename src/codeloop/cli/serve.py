"""`codeloop serve`: lets other programs drive the agent over HTTP."""

import asyncio
import signal
from pathlib import Path

import click


@click.command()
@click.option("--hostname", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=4096, show_default=True, help="Port; 0: a free one.")
def serve(hostname: str, port: int) -> None:
    """Serve this directory, and any other that a client names, over HTTP until a signal ends it."""
    from codeloop.app.app import App
    from codeloop.app.project import Startup
    from codeloop.server.listen import Listening, Server

    async def served() -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        server = Server(App(Startup(directory=Path.cwd())), Listening(host=hostname, port=port))
        await server.start()
        click.echo(f"opencode server listening on {server.url}")
        await ended.wait()
        await server.stop()

    asyncio.run(served())
