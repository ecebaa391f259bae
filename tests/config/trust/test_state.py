"""What trust is bound to: links, folders in folders, files that come and go, too many of them,
several processes.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from codeloop.config.paths import Paths, find_paths
from codeloop.config.trust import contents
from codeloop.config.trust.changes import list_trust_changes
from codeloop.config.trust.store import (
    TrustState,
    find_trust_record,
    find_trust_state,
    trust_changed_file,
    trust_directory,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace

ALLOW = '{"permission": "allow"}'


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"CODELOOP_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "user")})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    write(root / "codeloop.json", ALLOW)
    return root


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def state(paths: Paths, root: Path, directory: Path | None = None) -> TrustState:
    return find_trust_state(paths, root, directory or root)


def changes(paths: Paths, root: Path, directory: Path | None = None) -> list[str]:
    return [
        f"{change.what} {change.path}"
        for change in list_trust_changes(paths, root, directory or root)
    ]


def test_nobody_trusted_it(paths: Paths, root: Path) -> None:
    assert state(paths, root) == TrustState(is_trusted=False)
    assert changes(paths, root) == []
    assert not paths.state.exists()


def test_what_goes_back_to_what_it_was_is_trusted_again(paths: Paths, root: Path) -> None:
    trust_directory(paths, root)
    write(root / "codeloop.json", "{}")
    assert "codeloop.json changed" in (state(paths, root).reason or "")
    write(root / "codeloop.json", ALLOW)
    assert state(paths, root).is_trusted


def test_a_folder_below_brings_its_own_and_keeps_that_of_others(paths: Paths, root: Path) -> None:
    write(root / "a/.codeloop/command/x.md", "x")
    write(root / "b/opencode.json", "{}")
    trust_directory(paths, root)
    assert state(paths, root).is_trusted
    assert changes(paths, root, root / "a") == ["added a/.codeloop/command/x.md"]
    trust_directory(paths, root, root / "a")
    trust_directory(paths, root, root / "b")
    for place in (root, root / "a", root / "b"):
        assert state(paths, root, place).is_trusted
    (root / "a/.codeloop/command/x.md").unlink()
    assert state(paths, root).is_trusted
    assert state(paths, root, root / "b").is_trusted
    assert changes(paths, root, root / "a") == ["removed a/.codeloop/command/x.md"]


def test_a_link_counts_by_what_it_leads_to(paths: Paths, root: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "dotfiles/x.md", "x")
    write(root / ".codeloop/command/keep.md", "k")
    (root / ".codeloop/command/x.md").symlink_to(outside)
    (root / "AGENTS.md").symlink_to(outside)
    trust_directory(paths, root)
    assert state(paths, root).is_trusted
    write(outside, "y")
    assert changes(paths, root) == ["changed .codeloop/command/x.md", "changed AGENTS.md"]
    assert all(not change.patch for change in list_trust_changes(paths, root, root)), (
        "what lies elsewhere is not shown"
    )
    kept = "".join(copy.read_text() for copy in (paths.state / "trusted").iterdir())
    assert "k" in kept
    assert "x" not in kept


def test_instructions_become_a_link(paths: Paths, root: Path, tmp_path: Path) -> None:
    write(root / "AGENTS.md", "Be nice.")
    trust_directory(paths, root)
    write(root / "AGENTS.md", "Be quick.")
    assert state(paths, root).is_trusted, "its text is data, trusted or not"
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").symlink_to(write(tmp_path / "user/.ssh/id_rsa", "secret"))
    assert changes(paths, root) == ["added AGENTS.md"]


def test_a_named_secret_is_compared_and_never_kept(
    paths: Paths, root: Path, tmp_path: Path
) -> None:
    write(tmp_path / "user/key", "sk-elsewhere")
    write(root / "key", "sk-inside")
    values = {"provider": {"p": {"options": {"apiKey": "{file:key}", "other": "{file:~/key}"}}}}
    write(root / "codeloop.json", json.dumps(values))
    trust_directory(paths, root)
    stored = "".join(file.read_text() for file in paths.state.rglob("*") if file.is_file())
    assert "sk-" not in stored
    write(tmp_path / "user/key", "sk-renewed")
    assert state(paths, root).is_trusted, "the person's own file, which the project only names"
    write(root / "key", "sk-changed")
    (change,) = list_trust_changes(paths, root, root)
    assert (change.path, change.what, change.patch) == ("key", "changed", "")


def test_a_name_written_with_escapes_is_found(paths: Paths, root: Path) -> None:
    write(root / "p.txt", "one")
    write(root / "codeloop.json", '{"username": "{file:p.txt}", "model": "\\u007bfile:q.txt}"}')
    write(root / "q.txt", "one")
    trust_directory(paths, root)
    write(root / "q.txt", "two")
    assert changes(paths, root) == ["changed q.txt"]


def test_what_can_not_be_read_is_a_state_like_any(paths: Paths, root: Path) -> None:
    os.mkfifo(root / "opencode.json")
    trust_directory(paths, root)
    assert state(paths, root).is_trusted
    (root / "opencode.json").unlink()
    assert changes(paths, root) == ["removed opencode.json"]
    write(root / "opencode.json", "{}")
    assert changes(paths, root) == ["changed opencode.json"]


@pytest.mark.slow
def test_a_file_that_goes_while_others_are_read(paths: Paths, root: Path) -> None:
    """Whatever the moment, the answer is one of the two states, and never an error."""
    for number in range(20):
        write(root / f".codeloop/command/c{number}.md", "x")
    trust_directory(paths, root)
    stop = threading.Event()

    def flicker() -> None:
        while not stop.is_set():
            (root / ".codeloop/command/c9.md").unlink()
            write(root / ".codeloop/command/c9.md", "x")

    thread = threading.Thread(target=flicker)
    thread.start()
    try:
        seen = {tuple(changes(paths, root)) for _ in range(100)}
    finally:
        stop.set()
        thread.join()
    assert seen <= {(), ("removed .codeloop/command/c9.md",), ("changed .codeloop/command/c9.md",)}


@pytest.mark.parametrize("limit", ["TRUST_FILES", "TRUST_BYTES"])
def test_too_much_is_not_trusted_for_good(
    paths: Paths, root: Path, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust_directory(paths, root)
    monkeypatch.setattr(contents, limit, replace(getattr(contents, limit), value=10))
    for number in range(12):
        write(root / f".codeloop/plugin/p{number}.py", "x" * 10)
    found = state(paths, root)
    assert not found.is_trusted
    assert "more than can be compared" in (found.reason or "")
    with pytest.raises(CodeloopError, match="--trust"):
        trust_directory(paths, root)
    with pytest.raises(CodeloopError, match="more than can be compared"):
        list_trust_changes(paths, root, root)


def test_a_huge_file_is_not_trusted(paths: Paths, root: Path) -> None:
    write(root / ".codeloop/tool/t.py", "x" * (1024 * 1024 + 1))
    with pytest.raises(CodeloopError, match=r"tool/t\.py"):
        trust_directory(paths, root)


def test_another_work_tree_of_the_repository_is_another_directory(
    paths: Paths, tmp_path: Path, root: Path
) -> None:
    trust_directory(paths, root)
    write(tmp_path / "second/codeloop.json", ALLOW)
    assert not state(paths, tmp_path / "second").is_trusted


@pytest.mark.slow
def test_processes_that_trust_at_once_keep_what_both_saw(
    paths: Paths, root: Path, tmp_path: Path
) -> None:
    for name in "abcd":
        write(root / name / "opencode.json", f'{{"username": "{name}"}}')
    code = (
        "import sys; from pathlib import Path; from codeloop.config.paths import find_paths\n"
        "from codeloop.config.trust.store import trust_directory; root = Path(sys.argv[2])\n"
        "trust_directory(find_paths({'CODELOOP_HOME': sys.argv[1]}), root, root / sys.argv[3])\n"
    )
    home = str(tmp_path / "home")
    running = [
        subprocess.Popen([sys.executable, "-c", code, home, str(root), name]) for name in "abcd"
    ]
    assert [process.wait() for process in running] == [0] * 4
    assert all(state(paths, root, root / name).is_trusted for name in "abcd")


def test_the_persons_own_change_is_trusted_with_what_it_names(paths: Paths, root: Path) -> None:
    write(root / "style.md", "s")
    trust_directory(paths, root)
    write(root / "codeloop.json", '{"permission": "allow", "instructions": ["style.md"]}')
    write(root / ".codeloop/plugin/p.py", "evil")
    trust_changed_file(paths, root, root, root / "codeloop.json")
    assert changes(paths, root) == ["added .codeloop/plugin/p.py"]


@pytest.mark.parametrize(
    "name", ["./{env:NEVER_SET_ANYWHERE}made.py", "./{env:PART}.py", "./{file:part.txt}.py"]
)
@pytest.mark.parametrize(
    "config",
    [
        {"plugin": ["NAME"]},
        {"instructions": ["NAME"]},
        {"mcp": {"a": {"type": "local", "command": ["python3", "NAME"]}}},
    ],
)
def test_programs_that_are_named_with_references_are_compared(
    paths: Paths, root: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, object], name: str
) -> None:
    monkeypatch.setenv("PART", "made")
    write(root / "part.txt", "made\n")
    write(root / "made.py", "good")
    write(root / "codeloop.json", json.dumps(config).replace("NAME", name))
    trust_directory(paths, root)
    assert changes(paths, root) == []
    write(root / "made.py", "evil")
    assert changes(paths, root) == ["changed made.py"]


@pytest.mark.parametrize(
    ("section", "name"),
    [("mcp", "./vars"), ("mcpServers", "vars"), ("mcp", "${workspaceFolder}/vars")],
)
def test_the_variables_of_a_server_are_compared_and_not_shown(
    paths: Paths, root: Path, section: str, name: str
) -> None:
    entry = {"type": "local", "command": ["npx"], "envFile": name}
    write(root / "codeloop.json", json.dumps({section: {"a": entry}}))
    write(root / "vars", "KEY=secret")
    trust_directory(paths, root)
    assert changes(paths, root) == []
    write(root / "vars", "NODE_OPTIONS=--require ./evil.js")
    assert changes(paths, root) == ["changed vars"]
    assert b"KEY=secret" not in [file.read_bytes() for file in (paths.state / "trusted").iterdir()]


@pytest.mark.parametrize("folder", ["one", "plugins/one", "plugins/group/one"])
def test_the_marketplace_around_a_plugin_is_compared(paths: Paths, root: Path, folder: str) -> None:
    write(root / "codeloop.json", json.dumps({"plugin": [f"./{folder}"]}))
    write(root / folder / "commands" / "fix.md", "Fix it.")
    trust_directory(paths, root)
    write(root / ".claude-plugin/marketplace.json", '{"plugins": []}')
    assert changes(paths, root) == ["added .claude-plugin/marketplace.json"]


def test_copies_that_nothing_refers_to_are_removed(paths: Paths, root: Path) -> None:
    trust_directory(paths, root)
    write(root / "codeloop.json", "{}")
    trust_directory(paths, root)
    (copy,) = (paths.state / "trusted").iterdir()
    assert copy.read_text() == "{}"
    record = find_trust_record(paths, root)
    assert record is not None
    assert record.files == {"codeloop.json": copy.name}
