"""`scripts/setup`: says in a line what is missing and what to do,
and makes anew what can't be built upon.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.slow
SOURCES = (
    "pyproject.toml",
    "automation/pyproject.toml",
    "uv.lock",
    "requirements.txt",
    "requirements-dev.txt",
    "scripts/setup",
)
FIRST = next(
    line for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line
).split()[0]


def make_clone(folder: Path) -> Path:
    """Make a folder with what set-up reads, up to the point where packages are fetched."""
    for name in (*SOURCES, "src/codeloop/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def start(clone: Path, index: str, **more: str) -> "subprocess.Popen[str]":
    """Start set-up without uv, and with an index of ours in place of this machine's."""
    programs = clone.parent / "programs"
    programs.mkdir(exist_ok=True)
    for name in (
        "sh",
        "dirname",
        "cat",
        "cksum",
        "grep",
        "sed",
        "tail",
        "head",
        "cut",
        "rm",
        "readlink",
        "flock",
    ):
        found = shutil.which(name)
        if found and not (programs / name).exists():
            (programs / name).symlink_to(found)
    pip = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index,
        "PIP_RETRIES": "0",
        "PIP_DEFAULT_TIMEOUT": "60",
    }
    base = (
        Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    )
    environment = {
        "HOME": str(clone.parent),
        "PATH": str(programs),
        "PYTHON": str(base),
        "PIP_NO_CACHE_DIR": "1",
    }
    return subprocess.Popen(
        [clone / "scripts/setup", "program"],
        env={**environment, **pip, **more},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def set_up(clone: Path, index: str, **more: str) -> list[str]:
    """Run set-up, which must fail; return the lines that it printed."""
    program = start(clone, index, **more)
    _, printed = program.communicate(timeout=300)
    assert program.returncode == 1, printed
    lines = printed.splitlines()
    assert max(map(len, lines)) < 400
    return lines


@contextmanager
def serve_index(
    status: int = 404, body: bytes = b"", *, hangs: threading.Event | None = None
) -> Generator[str]:
    """Serve a package index that gives one answer to everything; yield its address.
    `hangs` is set when one waits.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if hangs is not None:
                hangs.set()
                ended.wait(120)
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            del code, size

    ended = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        finally:
            ended.set()
            server.shutdown()


@pytest.fixture
def dead() -> Iterator[str]:
    """An address at which nothing listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_clone(tmp_path / "clone")


def expect(lines: Sequence[str], reason: str) -> None:
    """Expect the reason in the last line, which says what to do, as the only one about it."""
    assert reason in lines[-1]
    assert lines[-1].startswith("codeloop is not set up: ")
    assert ", then do this again. All that pip said is in .venv/setup.log." in lines[-1]
    assert len(lines) <= 2, lines


def test_without_the_network_that_is_said_each_time(clone: Path, dead: str) -> None:
    for _ in range(2):
        expect(set_up(clone, f"http://{dead}/simple"), "Set-up needs the network once")


def test_a_proxy_that_is_gone_is_named_without_its_password(clone: Path, dead: str) -> None:
    lines = set_up(clone, "https://index.invalid/simple", HTTPS_PROXY=f"http://me:secret@{dead}")
    expect(lines, f"the proxy http://{dead} can't be reached")
    assert "secret" not in "".join(lines)


def test_an_index_without_a_package_and_one_that_wants_a_sign_in_are_told_apart(
    clone: Path,
) -> None:
    with serve_index(404) as index:
        expect(set_up(clone, index), f"has no {FIRST} for Python 3.")
    with serve_index(401) as index:
        expect(set_up(clone, index), "without a sign-in")


def test_a_package_with_another_hash_is_not_installed(clone: Path) -> None:
    name = f"{FIRST.replace('-', '_').replace('==', '-')}-py3-none-any.whl"
    with serve_index(200, f'<a href="/files/{name}">{name}</a>'.encode()) as index:
        expect(set_up(clone, index), "is another one than that of requirements.txt")


def test_settings_that_install_elsewhere_do_not_count_or_are_named(
    clone: Path, dead: str, tmp_path: Path
) -> None:
    elsewhere = {
        "PIP_TARGET": str(tmp_path / "t"),
        "PIP_PREFIX": str(tmp_path / "p"),
        "PIP_USER": "1",
    }
    expect(
        set_up(clone, f"http://{dead}/simple", **elsewhere, PIP_REQUIRE_VIRTUALENV="1"),
        "Set-up needs the network",
    )
    (tmp_path / "pip.conf").write_text("[install]\ntarget = /elsewhere\n")
    lines = set_up(clone, f"http://{dead}/simple", PIP_CONFIG_FILE=str(tmp_path / "pip.conf"))
    assert "install.target='/elsewhere' would install codeloop elsewhere. Remove it" in lines[-1]


def test_what_was_moved_or_lost_its_python_or_was_interrupted_is_made_anew(
    clone: Path, dead: str
) -> None:
    index = f"http://{dead}/simple"
    set_up(clone, index)
    moved = clone.rename(clone.with_name("moved"))
    assert set_up(moved, index)[0] == "Making .venv anew: it was made in another folder."
    assert len(set_up(moved, index)) == 1, "the second time nothing is wrong with .venv"

    (moved / ".venv/bin/python").unlink()
    (moved / ".venv/bin/python").symlink_to("/nonexistent/python3")
    assert set_up(moved, index)[0].startswith("Making .venv anew: its Python is gone from /")

    waits = threading.Event()
    with serve_index(hangs=waits) as hanging:
        program = start(moved, hanging)
        assert waits.wait(120)
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
    assert set_up(moved, index)[0] == "Making .venv anew: an earlier set-up was interrupted."


@pytest.mark.skipif(
    shutil.which("flock") is None, reason="flock is not installed here: then nobody waits"
)
def test_a_second_one_waits_for_the_first(clone: Path, dead: str) -> None:
    waits = threading.Event()
    with serve_index(hangs=waits) as hanging:
        first = start(clone, hanging)
        assert waits.wait(120)
        second = start(clone, f"http://{dead}/simple")
        assert second.stderr is not None
        assert second.stderr.readline() == f"Waiting for another set-up of {clone}\n"
    _, printed = second.communicate(timeout=300)
    first.communicate(timeout=300)
    assert "Making .venv anew" not in printed
    assert "Set-up needs the network once" in printed


def test_a_python_without_ensurepip_leaves_nothing_half_made(
    clone: Path, dead: str, tmp_path: Path
) -> None:
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    bare, library = tmp_path / "bare", Path(os.__file__).parent
    (bare / "bin").mkdir(parents=True)
    (bare / "lib" / name).mkdir(parents=True)
    shutil.copy(os.path.realpath(Path(sys.base_prefix) / "bin" / name), bare / "bin" / name)
    for entry in library.iterdir():
        if entry.name not in {"ensurepip", "site-packages"}:
            (bare / "lib" / name / entry.name).symlink_to(entry)
    (bare / "lib" / name / "site-packages").mkdir()
    for folder in (clone, clone):
        lines = set_up(folder, f"http://{dead}/simple", PYTHON=str(bare / "bin" / name))
        (line,) = lines
        assert line.startswith(
            f"{bare / 'bin' / name} has no venv module with pip in it. Debian and Ubuntu: apt "
        )
        # As earlier versions left it.
        if not (folder / ".venv").exists():
            subprocess.run(
                [bare / "bin" / name, "-m", "venv", "--without-pip", folder / ".venv"], check=True
            )


def test_a_path_with_a_colon_and_a_python_that_is_too_old_are_refused_before_anything_is_made(
    tmp_path: Path, dead: str
) -> None:
    odd = make_clone(tmp_path / "a:b")
    assert "with a colon in its path" in set_up(odd, f"http://{dead}/simple")[-1]
    clone = make_clone(tmp_path / "clone")
    lines = set_up(clone, f"http://{dead}/simple", PYTHON="/bin/false")
    assert lines[0].startswith("codeloop needs Python 3.11 or newer, and /bin/false is: ")
    assert "name it: make PYTHON=" in lines[1]
    assert not (odd / ".venv").exists()
    assert not (clone / ".venv").exists()
