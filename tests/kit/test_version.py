"""The version tells commits apart: read from a checkout's git folder,
or written when a wheel is built.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from codeloop.kit.version import RELEASE

ROOT = Path(__file__).resolve().parents[2]
BUILT_FROM = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "scripts/build_hook.py",
    "scripts/metadata_hook.py",
    "src/codeloop/__init__.py",
)
READER = "src/codeloop/kit/version.py"


def git(folder: Path, *arguments: str) -> str:
    identity = {
        f"GIT_{who}_{what}": "a@b.invalid"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    environment = {
        **os.environ,
        **identity,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_sources(folder: Path) -> Path:
    for name in (*BUILT_FROM, "src/codeloop/kit/lazy.py", READER):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = make_sources(tmp_path / "checkout")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "First")
    return folder


def read_version(checkout: Path) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import runpy; print(runpy.run_path({str(checkout / READER)!r})['VERSION'])",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def expect(checkout: Path) -> str:
    return f"{RELEASE}+g{git(checkout, 'rev-parse', 'HEAD')[:9]}"


def test_each_commit_of_a_checkout_has_its_version(checkout: Path) -> None:
    first = read_version(checkout)
    assert first == expect(checkout)
    git(checkout, "commit", "-q", "--allow-empty", "-m", "Second")
    assert read_version(checkout) == expect(checkout) != first


def test_the_version_is_read_from_packed_references(checkout: Path) -> None:
    git(checkout, "branch", "feature/main")
    git(checkout, "pack-refs", "--all")
    assert not (checkout / ".git/refs/heads/main").exists()
    assert read_version(checkout) == expect(checkout)


def test_the_version_of_a_work_tree_and_of_a_detached_head_is_that_of_its_commit(
    checkout: Path,
) -> None:
    tree = checkout.parent / "tree"
    git(checkout, "worktree", "add", "-q", "-b", "other", str(tree))
    git(tree, "commit", "-q", "--allow-empty", "-m", "Second")
    assert read_version(tree) == expect(tree) != expect(checkout)
    git(tree, "checkout", "-q", "--detach", "HEAD~1")
    assert read_version(tree) == expect(tree) == expect(checkout)


@pytest.mark.parametrize("packed", [False, True])
def test_the_commit_of_a_release_has_its_plain_number(checkout: Path, *, packed: bool) -> None:
    git(checkout, "tag", *(["-a", "-m", "A release"] if packed else []), f"v{RELEASE}")
    if packed:
        git(checkout, "pack-refs", "--all")
    assert read_version(checkout) == RELEASE
    git(checkout, "commit", "-q", "--allow-empty", "-m", "Second")
    assert read_version(checkout) == expect(checkout)


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "ref: refs/heads/.invalid", "none"])
def test_without_a_commit_the_version_says_so(checkout: Path, head: str) -> None:
    (checkout / ".git/HEAD").write_text(head)
    assert read_version(checkout) == f"{RELEASE}+unknown"


def build(sources: Path, target: str, folder: Path) -> Path:
    program = str(Path(sys.executable).with_name("hatchling"))
    folder.mkdir()
    # The build hook is a module of the sources, beside which nothing may be written.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [program, "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=sources, check=True, capture_output=True, env=environment)
    return next(folder.iterdir())


@pytest.mark.slow
def test_what_is_built_from_a_commit_has_its_version_and_is_the_same_each_time(
    checkout: Path, tmp_path: Path
) -> None:
    version = expect(checkout)
    wheel, again = (build(checkout, "wheel", tmp_path / f"wheel{number}") for number in (1, 2))
    assert wheel.name == f"codeloop-{version}-py3-none-any.whl"
    assert wheel.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(wheel) as opened:
        assert opened.read("codeloop/version.txt").decode() == f"{version}\n"
        opened.extractall(tmp_path / "site")
    assert (
        subprocess.check_output(
            [sys.executable, "-c", "from codeloop.kit.version import VERSION; print(VERSION)"],
            env={"PYTHONPATH": str(tmp_path / "site")},
            text=True,
        )
        == f"{version}\n"
    )
    archive, again = (build(checkout, "sdist", tmp_path / f"sdist{number}") for number in (1, 2))
    assert archive.read_bytes() == again.read_bytes()
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    from_archive = build(next((tmp_path / "unpacked").iterdir()), "wheel", tmp_path / "wheel3")
    assert from_archive.name == wheel.name
    with zipfile.ZipFile(from_archive) as opened:
        assert opened.read("codeloop/version.txt").decode() == f"{version}\n"
    assert git(checkout, "status", "--porcelain") == ""


@pytest.mark.slow
def test_sources_without_git_are_built_as_unknown(tmp_path: Path) -> None:
    wheel = build(make_sources(tmp_path / "sources"), "wheel", tmp_path / "wheel")
    assert wheel.name == f"codeloop-{RELEASE}+unknown-py3-none-any.whl"
