"""A rule lets a command out of the sandbox only where it takes nothing along that sandboxed commands may write."""

import subprocess
from pathlib import Path

import pytest

from codeloop.tool.builtin.shell.unsandboxed_line import UnsandboxedLineCheck


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root, home = tmp_path / "work", tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    git(root, "remote", "add", "origin", "https://example.com/a/b.git")
    return root


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True)


def doubt(root: Path, *commands: str, **environment: str) -> str:
    given = {"HOME": str(root.parent / "home"), "PATH": "/usr/bin:/bin", **environment}
    return UnsandboxedLineCheck(root, given, (root, Path("/tmp/other"))).find_doubt(commands)


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git push -u origin main",
        "git push --force-with-lease=main origin HEAD:refs/heads/x",
        "git push git@example.com:a/b.git main",
        "git fetch --all --prune",
        "git pull --rebase origin main",
        "git ls-remote --heads origin",
        "echo done",
    ],
)
def test_plain_ones_leave(root: Path, line: str) -> None:
    assert doubt(root, "cd sub", line) == ""


@pytest.mark.parametrize(
    "line",
    [
        "npm publish",
        "gh pr create",
        "docker build .",
        "git commit -m x",
        "git status",
        "git push --receive-pack=./evil origin",
        "git push --exec=./evil origin",
        "git push --recurse-submodules=on-demand",
        "git fetch --upload-pack ./evil origin",
        "git push ./evil.git",
        "git push evil.git main",
        "git push /tmp/other/evil.git",
        "git push file:///tmp/other/evil.git",
        "git push ext::sh",
        "git pull --exec=x",
        "git -c core.sshCommand=./evil push",
    ],
)
def test_what_could_run_something_of_the_project_does_not(root: Path, line: str) -> None:
    assert doubt(root, line)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("core.hooksPath", ".husky/_"),
        ("core.sshCommand", "./tools/ssh.sh"),
        ("core.sshCommand", "ssh -F work.conf -o ProxyCommand=./p"),
        ("credential.helper", "!./tools/helper"),
        ("credential.helper", "!npm run credentials"),
        ("credential.https://example.com.helper", "!python -m helper"),
        ("filter.x.smudge", "node ./smudge.js"),
        ("include.path", "../.gitconfig"),
        ("push.recurseSubmodules", "on-demand"),
        ("remote.origin.pushurl", "./evil.git"),
        ("remote.origin.receivepack", "sh -c evil"),
        ("url./tmp/other/.insteadOf", "https://example.com/a/"),
        ("url.file:///tmp/other/.pushInsteadOf", "https://example.com/"),
        ("url.ext::sh -c evil .insteadOf", "https://example.com/"),
    ],
)
def test_settings_that_lead_into_the_project_hold_them_back(root: Path, name: str, value: str) -> None:
    for place in (".husky/_/pre-push", ".gitconfig", "tools/ssh.sh"):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text("#!/bin/sh\n")
        (root / place).chmod(0o755)
    git(root, "config", name, value)
    assert doubt(root, "git push origin main")


@pytest.mark.parametrize("urls", [("/tmp/other/evil.git", "https://example.com/a"), ("ext::sh", "git@a.example:b")])
def test_each_address_of_a_remote_counts(root: Path, urls: tuple[str, str]) -> None:
    for url in urls:
        git(root, "config", "--add", "remote.origin.pushurl", url)
    assert doubt(root, "git push origin main")
    git(root, "config", "--unset-all", "remote.origin.pushurl")
    git(root, "config", "url.git@example.com:.insteadOf", "https://example.com/")
    assert doubt(root, "git push origin main") == ""


@pytest.mark.parametrize("name", ["branch.main.remote", "branch.main.pushRemote", "remote.pushDefault"])
@pytest.mark.parametrize("value", ["/tmp/other/evil.git", "./evil.git", ".", "upstream"])
def test_a_default_remote_that_may_be_a_folder_holds_a_push_back(root: Path, name: str, value: str) -> None:
    git(root, "config", name, value)
    assert doubt(root, "git push")
    assert doubt(root, "git push origin main") == ""
    assert bool(doubt(root, "git fetch")) == (value != ".")
    git(root, "config", name, "origin")
    assert doubt(root, "git push") == ""


def test_a_remote_in_a_file_of_old_versions_holds_a_push_back(root: Path) -> None:
    (root / ".git/remotes").mkdir()
    (root / ".git/remotes/origin").write_text("URL: /tmp/other/evil.git\n")
    assert ".git/remotes/origin" in doubt(root, "git push")


def test_a_hook_of_the_user_is_asked_about_but_for_that_of_lfs(root: Path) -> None:
    hook = root / ".git/hooks/pre-push"
    hook.write_text(
        "#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 || { echo >&2 'no git-lfs'; exit 2; }\ngit lfs pre-push \"$@\"\n"
    )
    hook.chmod(0o755)
    assert doubt(root, "git push") == ""
    hook.write_text("#!/bin/sh\nnpm test\n")
    assert "pre-push hook" in doubt(root, "git push")
    assert doubt(root, "git push --no-verify") == ""
    assert doubt(root, "git fetch") == ""


def test_what_surrounds_git_may_not_lie_in_the_project(root: Path) -> None:
    home = root.parent / "home"
    assert doubt(root, "git push", GIT_SSH_COMMAND=f"{root}/ssh")
    (root / "bin").mkdir()
    assert doubt(root, "git push", PATH=f"{root}/bin:/usr/bin") == ""
    (root / "bin/ssh").write_text("x")
    assert doubt(root, "git push", PATH=f"{root}/bin:/usr/bin")
    (home / ".ssh").mkdir()
    (home / ".ssh/config").write_text(f"Host *\n  ProxyCommand {root}/proxy %h\n")
    assert "ssh/config" in doubt(root, "git push")
