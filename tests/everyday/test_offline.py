"""What needs no registry: the sandbox is in the way of none of it, and asks nothing."""

import shutil
import textwrap
import zipfile
from pathlib import Path

import pytest

from tests.everyday.session import BLOCKED, Line, all_well, desk_of, worked

USES = """
import multiprocessing, os, pathlib, pty, socket, tempfile, unittest
from multiprocessing import shared_memory


class Uses(unittest.TestCase):
    def test_sockets(self):
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.create_server((host, 0), family=family) as server:
                with socket.create_connection(server.getsockname()[:2]) as client:
                    client.sendall(b"x")
                    self.assertEqual(server.accept()[0].recv(1), b"x")
        ours, theirs = socket.socketpair()
        with ours, theirs, socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.join(tempfile.mkdtemp(), "s"))

    def test_semaphores_and_shared_memory(self):
        with multiprocessing.Pool(2) as pool:
            self.assertEqual(pool.map(abs, [-1, -2]), [1, 2])
        memory = shared_memory.SharedMemory(create=True, size=100)
        memory.close()
        memory.unlink()
        pathlib.Path("/dev/shm/mine").write_text("x")

    def test_temporary_files(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
        for folder in ("/tmp", "/var/tmp", os.environ.get("TMPDIR", "/tmp")):
            pathlib.Path(folder, "mine").write_text("x")

    def test_a_terminal(self):
        pid, fd = pty.fork()
        if not pid:
            os.execlp("sh", "sh", "-c", "test -t 0 && echo a terminal")
        self.assertIn(b"a terminal", os.read(fd, 100))
        os.waitpid(pid, 0)
"""
SERVER = """
import http.server, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"served")
http.server.HTTPServer(("localhost", 8765), Handler).serve_forever()
"""
ASK = """
import time, urllib.request
for _ in range(1_200):
    try:
        print(urllib.request.urlopen("http://localhost:8765").read().decode())
        break
    except OSError:
        time.sleep(0.05)
"""


def wheel(folder: Path) -> str:
    """Make a package that can be installed without an index; return its file's name."""
    name = "greeting-1.0-py3-none-any.whl"
    about = "greeting-1.0.dist-info"
    with zipfile.ZipFile(folder / name, "w") as file:
        file.writestr("greeting.py", "def hello(name):\n    return f'Hello, {name}'\n")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        file.writestr(
            f"{about}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr(f"{about}/RECORD", "")
    return name


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


COMMIT = (
    "git add -A && git commit -qm 'The first' && git log --format='%an: %s' && git status --short"
)
COMMITTED = "A. Person: The first\n"


@needs("make")
def test_programs_and_a_server_that_the_next_command_reaches(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    for name, text in {"test_uses.py": USES, "server.py": SERVER, "ask.py": ASK}.items():
        (desk.work / name).write_text(textwrap.dedent(text))
    (desk.work / "Makefile").write_text("test:\n\tpython3 -m unittest -q\n")
    (desk.work / ".gitignore").write_text("__pycache__\n")
    tested, _, asked, committed, moved = ran = worked(
        desk,
        "make test 2>&1",
        Line("python3 server.py", {"run_in_background": True}),
        "python3 ask.py",
        COMMIT,
        "git branch other && git mv ask.py asked.py && git stash -q && git checkout -q other && git stash pop -q && ls",
    )
    all_well(ran)
    assert "OK" in tested.told
    assert (asked.told, committed.told) == ("served\n", COMMITTED)
    assert "asked.py" in moved.told


@pytest.mark.slow
def test_a_python_project(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    package = wheel(desk.work)
    (desk.work / ".gitignore").write_text(".venv\n")
    locked, used, committed = ran = worked(
        desk,
        f"python3 -m venv .venv && . .venv/bin/activate && pip install -q --no-index ./{package} && "
        "pip freeze > requirements.lock && cat requirements.lock",
        "python -c 'import greeting; print(greeting.hello(1))'",
        COMMIT,
    )
    all_well(ran)
    assert "greeting" in locked.told
    assert (used.told, committed.told) == ("Hello, 1\n", COMMITTED)


@pytest.mark.slow
@needs("npm", "node")
def test_a_node_project(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    greeting = desk.work / "greeting"
    greeting.mkdir()
    (greeting / "package.json").write_text('{"name": "greeting", "version": "1.0.0"}')
    (greeting / "index.js").write_text("exports.hello = name => `Hello, ${name}`\n")
    (desk.work / "package.json").write_text(
        '{"name": "app", "version": "1.0.0", "private": true, "scripts":'
        ' {"build": "node build.js", "test": "node test.js", "postinstall": "node -e 1"}}'
    )
    (desk.work / "build.js").write_text("require('fs').cpSync('test.js', 'dist/test.js')\n")
    (desk.work / "test.js").write_text(
        "const s = require('net').createServer().listen(0, 'localhost', () => {\n"
        "  console.log(require('greeting').hello('you')); s.close() })\n"
    )
    (desk.work / ".gitignore").write_text("node_modules\ndist\n")
    commit = "git add -A && git commit -qm first && git status --short && git log --format=%s"
    ran = worked(
        desk,
        "npm install --no-audit --no-fund ./greeting 2>&1",
        "npm run build && npm test",
        "npm ci",
        commit,
    )
    all_well(ran)
    assert "Hello, you" in ran[1].told
    assert ran[3].told == "first\n"
    assert (desk.work / "package-lock.json").exists()


@pytest.mark.slow
@needs("go")
def test_a_go_project(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, GOFLAGS="-mod=mod", GOPROXY="off")
    (desk.work / "greeting").mkdir()
    (desk.work / "greeting/go.mod").write_text("module example.com/greeting\n")
    (desk.work / "greeting/greeting.go").write_text(
        'package greeting\n\nfunc Hello(name string) string { return "Hello, " + name }\n'
    )
    (desk.work / "go.mod").write_text(
        "module example.com/app\n\nrequire example.com/greeting v0.0.0\n\nreplace example.com/greeting => ./greeting\n"
    )
    (desk.work / "main.go").write_text(
        'package main\n\nimport "example.com/greeting"\n\nfunc main() { println(greeting.Hello("you")) }\n'
    )
    (desk.work / "main_test.go").write_text(
        'package main\n\nimport (\n\t"net"\n\t"testing"\n)\n\nfunc TestListens(t *testing.T) {\n'
        '\tif _, err := net.Listen("tcp", "localhost:0"); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n'
    )
    built, _, committed = ran = worked(
        desk,
        "go mod tidy && go build -o app . && ./app",
        "go vet ./... && go test ./...",
        f"printf 'app\\n' > .gitignore; {COMMIT}",
    )
    all_well(ran)
    assert "Hello, you" in built.told
    assert committed.told == COMMITTED


@pytest.mark.slow
@needs("cargo")
def test_a_rust_project(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    _, run, committed = ran = worked(
        desk,
        "cargo init -q --name app . && cargo new -q --lib greeting && cargo add -q --path greeting --offline",
        "cargo build -q --offline && cargo test -q --offline && cargo run -q --offline",
        COMMIT,
    )
    all_well(ran)
    assert "Hello, world!" in run.told
    assert committed.told == COMMITTED


def test_hooks_run_in_the_sandbox_and_are_not_changed_there(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    hook = desk.work / ".git/hooks/pre-commit"
    text = f"#!/bin/sh\necho hooked > ran; echo x > {tmp_path}/outside; echo x >> {hook}\nexit 0\n"
    hook.write_text(text)
    hook.chmod(0o755)
    (ran,) = worked(desk, "git commit -q --allow-empty -m first; git log --format=%s")
    assert "first" in ran.told
    assert (desk.work / "ran").read_text() == "hooked\n"
    assert hook.read_text() == text
    assert not (tmp_path / "outside").exists()
    assert desk.git("log", "--format=%s") == "first\n"


@pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is not installed here")
def test_a_fetch_by_ssh_needs_the_outside_and_is_said_so(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    desk.git("remote", "add", "origin", "git@example.com:a/b.git")
    (fetched,) = worked(desk, "git commit -q --allow-empty -m plain && git fetch origin")
    assert BLOCKED in fetched.told
    assert "call bash again with `outside`" in fetched.told


def test_what_needs_the_outside_is_said_so(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    signed, branched = worked(
        desk,
        "git -c user.signingkey=ABCD commit --allow-empty -S -m signed",
        "git commit -q --allow-empty -m plain && git checkout -qb other && git branch --show-current",
    )
    assert "blocked: signing with your keys" in signed.told
    all_well([branched])
