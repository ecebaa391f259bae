"""`codeloop mcp add` and `allow`: what the sandbox of a server refuses is named,
and allowed by the command that is named.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk
from tests.cli.terminal import Terminal
from tests.support.sandbox_support import has_sandbox

TINY = Path(__file__).parents[1] / "extend" / "mcp" / "forms" / "tiny.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here"),
]
KEY_CHECK = "'ACME_API_KEY' in os.environ or sys.exit('Error: ACME_API_KEY is required')"
# What a server does first -> what is refused, as options of `allow`. `H` is its home.
REFUSED = {
    "open(H + '/notes/n.txt').read()": "--read ~/notes/n.txt",
    "os.listdir(H + '/notes')": "--read ~/notes",
    "open(H + '/notes/out.txt', 'w')": "--write ~/notes/out.txt",
    "sys.exit(f'Error: ENOENT: no such file or directory, open \\'{H}/notes/n.txt\\'')": (
        "--read ~/notes/n.txt"
    ),
    "sys.exit(f'open {H}/notes/n.txt: no such file or directory')": "--read ~/notes/n.txt",
    "sys.exit(f'{H}/notes/n.txt (No such file or directory)')": "--read ~/notes/n.txt",
    "sys.exit(f'sh: 1: cannot create {H}/notes/o: Read-only file system')": "--write ~/notes/o",
    KEY_CHECK: "--env ACME_API_KEY",
    "os.environ['ACME_API_KEY']": "--env ACME_API_KEY",
    "open('/dev/full-of-it') if os.path.exists('/dev/full-of-it') else None": "",
    "sys.exit(f'{H}/nowhere/n.txt: No such file or directory')": "",
}


def make_server(desk: Desk, first: str) -> Path:
    """Make a server that first does something; return its script."""
    (desk.folder / "notes").mkdir(exist_ok=True)
    (desk.folder / "notes" / "n.txt").write_text("a note")
    script = desk.folder / "code" / "s.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text(TINY.read_text().replace("# import", f"H = os.environ['HOME']\n{first}"))
    return script


def desk_of(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.configure(share="disabled")
    desk.environment["ACME_API_KEY"] = "its-key"
    return desk


@pytest.mark.parametrize("first", REFUSED)
def test_what_is_refused_is_named_with_the_options_that_allow_it(
    first: str, tmp_path: Path
) -> None:
    desk, options = desk_of(tmp_path), REFUSED[first]
    command = ("--", "python3", str(make_server(desk, first)))
    refused = desk.run("mcp", "add", "s", *command)
    if not options:
        assert "sandbox refused" not in refused.stderr
        return
    assert f"To allow it: add it with {options}." in refused.stderr
    if "sys.exit" in first and "--env" not in options:
        return
    words = shlex.split(options.replace("~", str(desk.folder)))
    added = desk.run("mcp", "add", "s", *words, *command)
    assert "s (tiny 1) works: 1 tool: act" in added.stdout, added.stderr


def entry_of(desk: Desk, name: str = "s") -> dict[str, Any]:
    return json.loads((desk.home / "config" / "codeloop.json").read_text())["mcp"][name]


def test_add_asks_for_what_was_refused_and_tries_again_until_it_works(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    script = make_server(desk, "open(H + '/notes/n.txt').read(); os.environ['ACME_API_KEY']")
    place = desk.folder / "data" / "new.db"
    terminal = Terminal(desk, "mcp", "add", "s", "--", "python3", str(script), "--db", str(place))
    terminal.wait_for("May s read")
    terminal.wait_for("[y/N]: ")
    terminal.type("y")
    terminal.wait_for("have your variable ACME_API_KEY?")
    terminal.wait_for("[y/N]: ")
    terminal.type("y")
    terminal.wait_for("May it also write there?")
    terminal.wait_for("[y/N]: ")
    terminal.type("y")
    terminal.wait_for("Written to")
    assert terminal.child.wait(60) == 0
    note = str(desk.folder / "notes" / "n.txt")
    assert entry_of(desk) == {
        "type": "local",
        "command": ["python3", str(script), "--db", str(place)],
        "sandbox": {"readable": [note], "writable": ["~/data/new.db"]},
        "environment": {"ACME_API_KEY": "{env:ACME_API_KEY}"},
    }


def test_allow_changes_the_entry_where_it_stands_and_needs_no_further_consent(
    tmp_path: Path,
) -> None:
    desk = desk_of(tmp_path)
    script = make_server(desk, "open(H + '/notes/n.txt').read()")
    server = {"command": "python3", "args": [str(script)]}
    desk.configure(share="disabled", mcpServers={"s": server})
    failed = desk.run("mcp", "debug", "s")
    assert "To allow it: codeloop mcp allow s --read ~/notes/n.txt" in failed.stderr
    listed = json.loads(desk.run("mcp", "list", "--json").stdout)[0]
    assert listed["refused"].endswith("codeloop mcp allow s --read ~/notes/n.txt")
    assert "~/notes/n.txt" in desk.run("doctor").stdout
    allowed = desk.run("mcp", "allow", "s", "--read", str(desk.folder / "notes"), "--env", "A=b")
    assert "~/code, ~/notes." in allowed.stdout, allowed.stderr
    written = json.loads((desk.home / "config" / "codeloop.json").read_text())
    assert written["mcpServers"]["s"]["sandbox"] == {"readable": [str(desk.folder / "notes")]}
    assert "mcp" not in written
    shown = desk.run("mcp", "debug", "s")
    assert "state: connected" in shown.stdout, shown.stderr
    assert "not agreed" not in shown.stdout
    assert json.loads(desk.run("mcp", "list", "--json").stdout)[0]["refused"] == ""
    assert desk.run("mcp", "allow", "s").returncode == 2
    assert desk.run("mcp", "allow", "other", "--off").returncode == 2
    assert "without a sandbox" in desk.run("mcp", "allow", "s", "--off").stdout


LOCAL = {"type": "local", "command": ["python3", "s.py"]}


@pytest.mark.parametrize(
    ("place", "config", "said"),
    [
        ("variable", {"mcp": {"s": LOCAL}}, "CODELOOP_CONFIG_CONTENT"),
        (
            "file",
            {"mcpServers": [{"name": "s", "command": "python3", "args": ["s.py"]}]},
            "by hand",
        ),
        ("file", {"mcp": {"s": {"type": "remote", "url": "http://127.0.0.1:9/mcp"}}}, "remote"),
        ("file", {"mcpServers": {"s": {"url": "http://127.0.0.1:9/mcp"}}}, "remote"),
    ],
)
def test_allow_says_what_it_cant_change(
    place: str, config: dict[str, Any], said: str, tmp_path: Path
) -> None:
    desk = desk_of(tmp_path)
    if place == "variable":
        desk.environment["CODELOOP_CONFIG_CONTENT"] = json.dumps(config)
    else:
        desk.configure(share="disabled", **config)
    file = desk.home / "config" / "codeloop.json"
    before = file.read_text()
    refused = desk.run("mcp", "allow", "s", "--off")
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
    assert file.read_text() == before
