"""`codeloop auth` as a person or a script runs it: keys go in, and never out."""

import json
import os
import pty
import re
import select
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.program import Desk, codeloop, serving, steps
from tests.support.answers import Answer

KEY = "sk-acme-0123456789wxyz"


def stored(folder: Path) -> dict[str, dict[str, str]]:
    return json.loads((folder / "home" / "data" / "auth.json").read_text())


def test_a_key_from_stdin_is_stored_for_the_providers_address(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "auth", "login", "anthropic", "--key-stdin", stdin=KEY + "\n")
    assert done.returncode == 0, done.stderr
    assert stored(tmp_path) == {
        "anthropic": {"type": "api", "key": KEY, "origin": "https://api.anthropic.com"}
    }
    assert stat.S_IMODE((tmp_path / "home" / "data" / "auth.json").stat().st_mode) == 0o600
    assert KEY not in done.stdout + done.stderr
    assert "sk-…wxyz" in done.stdout
    assert "https://api.anthropic.com" in done.stdout
    assert "stored, not tried" in done.stdout


def test_list_shows_where_each_key_is_from_and_for_but_no_key(tmp_path: Path) -> None:
    codeloop(tmp_path, "auth", "login", "openai", stdin=KEY)
    done = codeloop(tmp_path, "auth", "list", XAI_API_KEY="xai-0123456789abcdefgh")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "https://api.openai.com" in lines["openai"]
    assert "auth.json" in lines["openai"]
    assert "https://api.x.ai" in lines["xai"]
    assert "XAI_API_KEY" in lines["xai"]
    assert KEY not in done.stdout
    assert "0123456789abcdefgh" not in done.stdout


def test_list_warns_when_others_can_read_the_file(tmp_path: Path) -> None:
    codeloop(tmp_path, "auth", "login", "openai", stdin=KEY)
    (tmp_path / "home" / "data" / "auth.json").chmod(0o644)
    assert "chmod 600" in codeloop(tmp_path, "auth", "list").stderr


def test_logout_removes_the_key_and_says_when_there_is_none(tmp_path: Path) -> None:
    codeloop(tmp_path, "auth", "login", "openai", stdin=KEY)
    assert codeloop(tmp_path, "auth", "logout", "openai").returncode == 0
    assert stored(tmp_path) == {}
    done = codeloop(tmp_path, "auth", "logout", "openai")
    assert done.returncode != 0
    assert "No key for `openai`" in done.stderr


@pytest.mark.parametrize(
    "key", ["", "\n", "two words", "sk-é", "k" * 20_000, "a\x00b", "a\x1b[31mb"]
)
def test_what_is_no_key_is_refused_and_nothing_stored(tmp_path: Path, key: str) -> None:
    done = codeloop(tmp_path, "auth", "login", "openai", "--key-stdin", stdin=key)
    assert done.returncode == 2
    assert "not a valid key" in done.stderr
    assert not (tmp_path / "home" / "data" / "auth.json").exists()


def test_a_provider_of_ones_own_needs_its_address(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "auth", "login", "mine", stdin=KEY)
    assert done.returncode == 3
    assert "--base-url" in done.stderr
    done = codeloop(
        tmp_path, "auth", "login", "mine", "--base-url", "https://mine.example:8443/v1", stdin=KEY
    )
    assert done.returncode == 0, done.stderr
    assert stored(tmp_path)["mine"]["origin"] == "https://mine.example:8443"
    assert "provider.mine" in done.stdout


@pytest.mark.parametrize("url", ["mine.example", "https://api.openai.com@evil.example", "ftp://x"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    done = codeloop(tmp_path, "auth", "login", "openai", "--base-url", url, stdin=KEY)
    assert done.returncode == 3
    assert not (tmp_path / "home" / "data" / "auth.json").exists()


def test_a_broken_file_is_reported_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "home" / "data" / "auth.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"openai": ')
    for arguments in (("login", "openai"), ("list",), ("logout", "openai")):
        done = codeloop(tmp_path, "auth", *arguments, stdin=KEY)
        assert done.returncode == 3
        assert "left as they are" in done.stderr
    assert path.read_text() == '{"openai": '


def test_a_project_can_not_send_a_stored_key_elsewhere(tmp_path: Path) -> None:
    codeloop(tmp_path, "auth", "login", "openai", stdin=KEY)
    config = {"provider": {"openai": {"options": {"baseURL": "http://127.0.0.1:9/v1"}}}}
    (tmp_path / "work" / "codeloop.json").write_text(json.dumps(config))
    done = codeloop(tmp_path, "auth", "list")
    assert "127.0.0.1" not in done.stdout
    assert "provider" in done.stderr


@pytest.mark.slow
def test_in_a_terminal_the_key_is_asked_for_and_not_echoed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    main, side = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", "from codeloop.cli.main import main; main()", "auth", "login", "openai"],
        cwd=tmp_path / "work", stdin=side, stdout=side, stderr=side, start_new_session=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CODELOOP_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    os.close(side)
    shown = b""
    sent = False
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([main], [], [], 0.2)[0]:
            try:
                chunk = os.read(main, 4096)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
        if not sent and b"Key for https://api.openai.com" in shown:
            os.write(main, KEY.encode() + b"\n")
            sent = True
    child.wait(timeout=60)
    os.close(main)
    assert child.returncode == 0, shown
    assert KEY.encode() not in shown
    assert stored(tmp_path)["openai"]["key"] == KEY


@pytest.mark.slow
def test_a_key_in_the_keyring_is_listed_used_and_removed_there(tmp_path: Path) -> None:
    ring = tmp_path / "ring.json"
    backend = {
        "PYTHON_KEYRING_BACKEND": "tests.support.file_keyring.FileKeyring",
        "FILE_KEYRING": str(ring),
    }
    desk = Desk(tmp_path, {**backend, "PYTHONPATH": str(Path(__file__).parents[2])})
    with serving(steps(Answer(text="Done.")), key=KEY) as server:
        desk.use(server, options={"apiKey": ""})
        done = desk.run("auth", "login", "local", "--keyring", "--base-url", server.url, stdin=KEY)
        assert "in the system's keyring" in done.stdout, done.stderr
        listed = desk.run("auth", "list").stdout
        assert re.search(
            r"local +in the keyring +http://127.0.0.1:\d+ +the system's keyring", listed
        )
        assert desk.run("run", "hi").stdout == "Done.\n"
    assert KEY in ring.read_text()
    for folder in ("data", "config"):
        assert not any(
            KEY.encode() in path.read_bytes()
            for path in (desk.home / folder).rglob("*")
            if path.is_file()
        )
    assert (
        "Removed the key for local from the system's keyring."
        in desk.run("auth", "logout", "local").stdout
    )
    assert ring.read_text() == "{}"


@pytest.mark.slow
def test_the_keyring_is_imported_only_for_a_key_that_is_there(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"PYTHONPATH": str(tmp_path)})
    stored = desk.home / "data" / "auth.json"
    stored.parent.mkdir(parents=True)
    stored.write_text('{"openai": {"type": "keyring", "origin": "https://api.openai.com"}}')
    # As where it is not installed. PYTHONPATH can't put a module before those of codeloop,
    # but Python starts with this.
    (tmp_path / "sitecustomize.py").write_text(f"""
import sys
class Finder:
    def find_spec(self, name, *_):
        if name == "keyring":
            open({str(tmp_path / "imported")!r}, "w")
            raise ImportError(name)
sys.meta_path.insert(0, Finder())
""")
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        assert desk.run("run", "hi").stdout == "Done.\n"
    assert "openai" in desk.run("auth", "list").stdout
    assert not (tmp_path / "imported").exists()
    done = desk.run("auth", "login", "openai", "--keyring", stdin=KEY)
    assert done.returncode == 3
    assert "`keyring` is not installed where codeloop is" in done.stderr
    assert (tmp_path / "imported").exists()
