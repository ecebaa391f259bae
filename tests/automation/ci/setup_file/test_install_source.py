"""From which repository and commit a job installs codeloop."""

import json
import subprocess
from pathlib import Path

import pytest

from codeloop.schema.errors import UsageProblem
from codeloop_automation.ci.setup_file.install_source import (
    InstallSource,
    find_install_source,
    parse_install_source,
    read_clone,
)

ADDRESS = "https://git.example:8443/team/codeloop.git"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def make_clone(folder: Path, address: str, *, is_pushed: bool = True) -> str:
    """Make a repository with one commit, which a branch of the remote `up/stream`
    has when it is pushed.
    """
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "One")
    git(folder, "remote", "add", "up/stream", address)
    commit = git(folder, "rev-parse", "HEAD")
    if is_pushed:
        git(folder, "update-ref", "refs/remotes/up/stream/main", commit)
    return commit


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, document: object) -> None:
    """Make codeloop an installed distribution whose installer has recorded this."""
    info = folder / "codeloop-0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: codeloop\nVersion: 0.0\n")
    if document is not None:
        (info / "direct_url.json").write_text(json.dumps(document))
    monkeypatch.syspath_prepend(str(folder))


def test_a_repository_and_a_whole_hash_are_taken() -> None:
    assert parse_install_source(f"{ADDRESS}@{COMMIT}") == InstallSource(ADDRESS, COMMIT)
    assert parse_install_source(f"{ADDRESS}@{COMMIT + COMMIT[:24]}").commit == COMMIT + COMMIT[:24]


@pytest.mark.parametrize(
    "text",
    [
        "codeloop",
        "codeloop==0.1.0",
        "",
        ADDRESS,
        f"{ADDRESS}@main",
        f"{ADDRESS}@v1.0",
        f"{ADDRESS}@{COMMIT[:12]}",
        f"{ADDRESS}@{COMMIT.upper()}",
        f"http://git.example/codeloop.git@{COMMIT}",
        f"git@git.example:team/codeloop.git@{COMMIT}",
        f"ssh://git.example/codeloop.git@{COMMIT}",
        f"ext::sh -c id@{COMMIT}",
        f"--upload-pack=id@{COMMIT}",
        f"https://me:secret@git.example/codeloop.git@{COMMIT}",
        f"https://git.example/codeloop.git;id@{COMMIT}",
        f"https://git.example/$(id)@{COMMIT}",
        f"https://git.example/a b@{COMMIT}",
        f"{ADDRESS}@{COMMIT}\n",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem, match="whole hash of a commit"):
        parse_install_source(text)


def test_what_was_installed_from_a_repository_is_installed_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vcs = {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}
    record(tmp_path, monkeypatch, {"url": ADDRESS, "vcs_info": vcs})
    assert find_install_source() == InstallSource(ADDRESS, COMMIT)


def test_what_was_installed_from_a_clone_is_installed_from_its_remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "a clone"
    commit = make_clone(clone, ADDRESS)
    record(tmp_path / "site", monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert find_install_source() == InstallSource(ADDRESS, commit)


@pytest.mark.parametrize(
    "document",
    [
        None,
        {"url": "file:///tmp/codeloop-0.0-py3-none-any.whl", "archive_info": {}},
        {
            "url": f"https://me:secret@{ADDRESS[8:]}",
            "vcs_info": {"vcs": "git", "commit_id": COMMIT},
        },
        {
            "url": "git@git.example:team/codeloop.git",
            "vcs_info": {"vcs": "git", "commit_id": COMMIT},
        },
        {"url": "file:///nonexistent/clone", "dir_info": {}},
    ],
)
def test_where_it_is_not_known_nothing_is_written_and_what_to_type_is_said(
    document: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, monkeypatch, document)
    with pytest.raises(UsageProblem, match="codeloop ci setup --install-from https://") as caught:
        find_install_source()
    assert "secret" not in str(caught.value)


def test_a_commit_that_was_not_pushed_is_refused(tmp_path: Path) -> None:
    commit = make_clone(tmp_path, ADDRESS, is_pushed=False)
    with pytest.raises(UsageProblem, match=f"no branch of a remote has commit {commit[:12]}"):
        read_clone(tmp_path)


@pytest.mark.parametrize(
    "address", ["git@git.example:team/codeloop.git", "/srv/codeloop.git", "https://a:b@x.y/z.git"]
)
def test_a_remote_that_a_job_can_not_clone_is_refused(address: str, tmp_path: Path) -> None:
    make_clone(tmp_path, address)
    with pytest.raises(UsageProblem, match="could clone"):
        read_clone(tmp_path)
