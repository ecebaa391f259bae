"""Remote servers of the tests, and what a person's browser does when it
is led through a sign-in.
"""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

SERVER = Path(__file__).with_name("package_server.py")


@contextmanager
def reserving_port() -> Generator[int]:
    """Keep a port for who listens on it with SO_REUSEADDR: the system gives it to nobody else,
    and to no client.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]


@contextmanager
def serving(kind: str, *more: str) -> Generator[str]:
    """Run the server; yields its address."""
    with reserving_port() as port, running(kind, port, *more) as url:
        yield url


@contextmanager
def running(kind: str, port: int, *more: str) -> Generator[str]:
    """Run the server on a port; yields its address."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), kind, str(port), *more], stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None
            assert time.monotonic() < deadline
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}{'/sse' if kind == 'sse' else '/mcp'}"
    finally:
        process.kill()
        process.wait()


def opened(url: str) -> None:
    """Do what a browser does with an address that agrees at once."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()


def led_to(url: str) -> str:
    """Return where a browser is led by the provider,
    as one on another machine: nothing answers there.
    """
    address = urlsplit(url)
    connection = HTTPConnection(address.netloc, timeout=60)
    try:
        connection.request("GET", f"{address.path}?{address.query}")
        return connection.getresponse().headers["location"]
    finally:
        connection.close()
