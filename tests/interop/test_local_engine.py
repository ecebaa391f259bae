"""llama.cpp's own server, with a toy model: found, asked for its context,
refused where it is too small, stopped.
"""

import json
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk
from tests.support.installed_programs import install_python_programs
from tests.support.programs import run_program

pytestmark = pytest.mark.interop
PROGRAM = Path(__file__).parent / "engine" / "llama_server.py"
PACKAGES = ("xllamacpp==2026.10.11549", "gguf==0.19.0")
DEFAULT_PORT = 8080
MODEL = "toy.gguf"
CLAIMED = 131_072
"""Tokens; what the configuration says that the model can take."""


@contextmanager
def engine(folder: Path, context: int, *options: str, port: int = 0) -> Generator[str]:
    """Run the server and yield its URL; a token of its model is a byte."""
    python = install_python_programs(*PACKAGES) / "python"
    with run_program(
        [str(python), str(PROGRAM), str(port), str(context), *options], folder, None
    ) as url:
        assert url.startswith("http://"), f"the server did not start: {url!r}"
        yield url


def desk_for(folder: Path, url: str, output: int = 8_192) -> Desk:
    """Return a project whose configuration knows the server by a name of the user's own.
    `output`: tokens at most.
    """
    desk = Desk(folder)
    models = {MODEL: {"limit": {"context": CLAIMED, "output": output}}}
    desk.configure(provider={"llamacpp": {"options": {"baseURL": f"{url}/v1"}, "models": models}})
    return desk


def slot(url: str) -> dict[str, Any]:
    """Return the state of the only request that the server works on at a time."""
    with urllib.request.urlopen(f"{url}/slots", timeout=30) as answer:
        (found,) = json.load(answer)
    return found


def written(url: str) -> int:
    """Return how many tokens the server has written of the answer that it works on."""
    now = slot(url)
    return now["next_token"][0]["n_decoded"] if now["is_processing"] else 0


def wait_for(is_reached: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + 60
    while not is_reached():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def test_it_is_found_at_its_default_port(tmp_path: Path) -> None:
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", DEFAULT_PORT)) == 0:
            pytest.skip(f"something else listens on port {DEFAULT_PORT} of this machine")
    # A busy machine may need more than the 150 ms.
    desk = Desk(tmp_path, limits={"DISCOVER_TIME": 20_000})
    with engine(tmp_path, 32_768, port=DEFAULT_PORT):
        listed = desk.run("models")
        done = desk.run("run", "hello")
    assert f"llama.cpp/{MODEL}" in listed.stdout
    assert (done.returncode, done.stdout.strip()) == (0, "Works."), done.stderr
    assert "of 32.8k context" in done.stderr


def test_an_answer_streams_to_its_end_and_is_counted_by_the_engine(tmp_path: Path) -> None:
    with engine(tmp_path, 65_536) as url:
        desk = desk_for(tmp_path, url)
        done = desk.run("run", "--model", f"llamacpp/{MODEL}", "--format", "json", "hello")
        shown = desk.run("run", "--continue", "--model", f"llamacpp/{MODEL}", "and again")
        counted = slot(url)["n_prompt_tokens"]
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["text"] == "Works."
    assert "estimated" not in result["tokens"]
    assert result["tokens"]["output"] == len("Works.") + 1  # the end is a token
    # Instructions and tools; the second request is longer.
    assert 4_096 < result["tokens"]["input"] < counted
    assert "of 65.5k context" in shown.stderr  # not what the configuration says


def test_a_context_too_small_for_the_tools_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    with engine(tmp_path, 2_048) as url:
        done = desk_for(tmp_path, url).run("run", "--model", f"llamacpp/{MODEL}", "hello")
        assert "n_prompt_tokens" not in slot(url)  # no request has come
    assert done.returncode == 3
    assert "is loaded with a context of 2,048 tokens" in done.stderr
    assert "llama-server with a longer context: `-c 32768`" in done.stderr


def test_what_an_estimate_lets_pass_and_the_engine_refuses_is_explained(tmp_path: Path) -> None:
    with engine(tmp_path, 5_888) as url:
        done = desk_for(tmp_path, url).run("run", "--model", f"llamacpp/{MODEL}", "hello")
    assert done.returncode == 3
    assert "exceeds the available context size (5888 tokens)" in done.stderr
    assert "`-c 32768`" in done.stderr


def test_an_answer_that_fills_the_context_says_how_to_get_more(tmp_path: Path) -> None:
    with engine(tmp_path, 10_240, "endless") as url:
        done = desk_for(tmp_path, url).run("run", "--model", f"llamacpp/{MODEL}", "hello")
    assert done.returncode == 3
    assert "Works.Works." in done.stderr
    assert "filled the context of 10,240 tokens" in done.stderr
    assert "`-c 32768`" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_cancel_stops_the_generation_at_the_engine(tmp_path: Path) -> None:
    with engine(tmp_path, CLAIMED, "endless") as url:
        running = desk_for(tmp_path, url, output=65_536).start(
            "run", "--model", f"llamacpp/{MODEL}", "hello"
        )
        try:
            wait_for(lambda: written(url) > len("Works.Works."), "the engine writes nothing")
            running.send_signal(signal.SIGINT)
            _, shown = running.communicate(timeout=60)
        finally:
            running.kill()
        wait_for(lambda: not slot(url)["is_processing"], "the engine goes on writing")
    assert running.returncode == 130
    assert "Works.Works." in shown
    assert "Interrupted" in shown
