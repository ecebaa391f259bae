"""The paths that a helper program names, and what is made writable for one."""

import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.workspace.sandbox.named_paths import find_named_paths
from codeloop.workspace.sandbox.program_profile import prepare_place
from tests.cli.program import without_privileges

LOCKED = """
import sys
from pathlib import Path
from codeloop.workspace.sandbox.helper_refusals import Refused, find_refusals
from codeloop.workspace.sandbox.named_paths import find_named_paths
from codeloop.workspace.sandbox.paths.linked_paths import leads_out_of_project
from codeloop.workspace.sandbox.program_profile import ProfilePolicyMaker, ProgramProfile
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.sandbox.policy import PolicyInput

top = Path(sys.argv[1])
home, locked, root = top / "home", top / "locked", top / "work"
path = locked / "a" / "config"
try:
    path.is_dir()
    (top / "link" / "a").is_symlink()
except PermissionError:
    print("locked")
for words in ([str(path)], ["-v", f"{home}:{path}"], [str(top / "link" / "a" / "b")]):
    find_named_paths(words, [str(path)], home, roots=(root,))
leads_out_of_project(top / "link" / "a" / "b", (root,))
place = PolicyInput(root, root, top / "scratch", {"PATH": "/usr/bin", "HOME": str(home)})
profile = ProgramProfile(top / "own", named=(path,))
policy = ProfilePolicyMaker(profile, place, SandboxConfig()).make_policy()
text = f"permission denied: {path}\\nno such file: {path}\\nCannot find package 'x' from {path}"
find_refusals(text, Refused(policy, home, root, {}, {}))
print("done")
"""


def test_a_folder_that_may_not_be_searched_is_no_error(tmp_path: Path) -> None:
    for name in ("home", "locked", "work", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("locked")
    (tmp_path / "locked").chmod(0)
    done = subprocess.run(
        (*without_privileges(), sys.executable, "-c", LOCKED, str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    (tmp_path / "locked").chmod(0o700)
    # Newer versions of Python raise nothing themselves.
    assert done.stdout.split()[-1:] == ["done"], done.stderr


def test_a_link_in_the_project_shows_nothing_outside_it(tmp_path: Path) -> None:
    root, private = tmp_path / "work", tmp_path / "home" / "docs" / "private"
    (private / "src").mkdir(parents=True)
    (private / "package.json").touch()
    (private / "run.py").touch()
    root.mkdir()
    (root / "server.py").touch()
    for name in ("data", "node_modules"):
        (root / name).symlink_to(private)
    (root / "inner").symlink_to("server.py")
    script = tmp_path / "home" / "tools" / "start.sh"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\nexec node {root}/data/run.py\n")
    names = (root / "server.py", root / "data", root / "data" / "run.py", root / "inner", script)
    words = tuple(map(str, names))
    named = find_named_paths(words, words, tmp_path / "home", roots=(root,))
    shown = [each for each in named.code if each.resolve().is_relative_to(private)]
    assert shown == []
    assert {root / "server.py", root / "inner", script} <= {*named.code}


@pytest.mark.parametrize(
    "name", [".config/app.db", ".cache/a.db", ".local/a.db", ".local/share/a.db", ".claude/x/a.db"]
)
def test_of_a_folder_that_programs_share_only_the_file_is_writable(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    assert prepare_place(file, tmp_path).path == file
    assert file.exists()


def test_a_file_beside_a_link_is_writable_alone_and_another_with_its_folder(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ".config" / "app"
    folder.mkdir(parents=True)
    (folder / "settings").touch()
    place = prepare_place(folder / "a.db", tmp_path)
    assert (place.path, place.protected) == (folder, (folder / "settings",))
    (folder / "start").symlink_to(tmp_path)
    assert prepare_place(folder / "a.db", tmp_path).path == folder / "a.db"
