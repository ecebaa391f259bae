"""The secret files of a project are found again as soon as it changes,
and only what changed is read.
"""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.workspace.sandbox.paths.secret_files import ProjectSecrets
from tests.support.audit_hook import add_audit

KEY = "-----BEGIN PRIVATE KEY-----"
TOKEN = "//registry.example.com/:_authToken=abc"


def write(name: str, text: str = "A=b") -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return make


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("src/deep", ".docker", "lib"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "lib/server.key").write_text("public")
    (tmp_path / ".npmrc").write_text("save-exact=true")
    (tmp_path / "lib/auth.json").write_text('{"login": "Sign in"}')
    (tmp_path / "lib/gradle.properties").write_text("org.gradle.daemon=true")
    return tmp_path


@pytest.mark.parametrize(
    "make",
    [
        write(".env"),
        write("src/deep/.env.local"),
        write("new/folder/.env"),
        write(".docker/config.json", "{}"),
        write(".npmrc", TOKEN),
        write("lib/server.key", KEY),
        write("lib/other.pem", KEY),
        write("config/master.key", "0123456789abcdef0123456789abcdef\n"),
        write("sops/age.key", "# created\nAGE-SECRET-KEY-1ABC"),
        write(".dev.vars"),
        write("apps/.dev.vars.staging"),
        write(".streamlit/secrets.toml"),
        write("AuthKey_1.p8", KEY),
        write("ansible/.vault_pass"),
        write("auth.json", '{"github-oauth": {"github.com": "abc"}}'),
        write("NuGet.Config", '<add key="ClearTextPassword" value="abc" />'),
        write("android/gradle.properties", "org.gradle.jvmargs=-Xmx2g\nsigning.password=abc"),
        write(".yarnrc.yml", "npmAuthToken: abc"),
    ],
)
@pytest.mark.parametrize("is_settled", [True, False])
def test_a_secret_that_appears_is_found(
    project: Path, make: Callable[[Path], Path], *, is_settled: bool
) -> None:
    secrets = ProjectSecrets(project)
    if is_settled:
        time.sleep(0.15)
    assert not secrets.find_secrets()
    path = make(project)
    assert path in secrets.find_secrets()
    path.unlink()
    assert not secrets.find_secrets()


def test_a_tests_file_that_git_has_is_none_until_it_differs(project: Path) -> None:
    fixture, other = write("tests/fixtures/.netrc")(project), write("deploy/.env")(project)
    secrets = ProjectSecrets(project)
    assert secrets.find_secrets() == {fixture, other}, "nothing is tracked"
    for words in (("init", "--quiet"), ("add", "tests", "deploy")):
        subprocess.run(("git", *words), cwd=project, check=True)
    assert secrets.find_secrets() == {other}, (
        "a tracked file elsewhere may be meant for one machine"
    )
    fixture.write_text("machine example.com password mine")
    assert secrets.find_secrets() == {fixture, other}
    subprocess.run(("git", "update-index", "--assume-unchanged", fixture), cwd=project, check=True)
    assert secrets.find_secrets() == {fixture, other}, "what the index says of times does not count"


def test_a_project_that_did_not_change_is_not_read_again(project: Path) -> None:
    (project / ".env").write_text("A=b")
    time.sleep(0.15)
    secrets = ProjectSecrets(project)
    assert secrets.find_secrets() == {project / ".env"}
    read: list[str] = []

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event in {"os.scandir", "open"}:
            read.append(str(arguments[0]))

    with add_audit(audit):
        assert secrets.find_secrets() == {project / ".env"}
    assert not read
