"""A rule lets a command out of the sandbox only where it takes nothing along that
sandboxed commands may write.
"""

import subprocess
from pathlib import Path

import pytest

from codeloop.kit.guarded_paths import is_protected
from codeloop.shell.analysis import Analysis, analyse
from codeloop.tool.builtin.shell.machine_facts import gather_facts
from codeloop.tool.builtin.shell.unsandboxed_line import UnsandboxedLineCheck
from codeloop.workspace.process.shells import ShellContext
from codeloop.workspace.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root, home = tmp_path / "work", tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    git(root, "remote", "add", "origin", "https://example.com/a/b.git")
    return root


def analyse_in(root: Path, line: str, directory: str = ".") -> Analysis:
    environment = {"HOME": str(root.parent / "home"), "PATH": "/usr/bin:/bin"}
    workspace = Workspace(root, root, root.parent / "scratch", environment)
    context = ShellContext("s", root / directory, environment, workspace.scratch)
    return analyse(line, gather_facts(line, root / directory, context, workspace, outside=True))


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
        "git push -o ci.skip origin main",
        "git fetch --depth 1 origin",
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
        "git push -o origin ./evil.git",
        "git push --push-option origin ./evil.git",
        "git fetch --shallow-since origin ./evil.git",
        "git pull --exec=x",
        "git -c core.sshCommand=./evil push",
        "git -C sub push",
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
        ("include.path", "a name"),
        ("includeIf.onbranch:main.path", "extra"),
        ("core.alternateRefsCommand", "./tools/ssh.sh"),
        ("gc.recentObjectsHook", "./tools/ssh.sh"),
        ("sequence.editor", "./tools/ssh.sh"),
        ("push.recurseSubmodules", "on-demand"),
        ("remote.origin.pushurl", "./evil.git"),
        ("remote.origin.receivepack", "sh -c evil"),
        ("url./tmp/other/.insteadOf", "https://example.com/a/"),
        ("url.file:///tmp/other/.pushInsteadOf", "https://example.com/"),
        ("url.ext::sh -c evil .insteadOf", "https://example.com/"),
    ],
)
def test_settings_that_lead_into_the_project_hold_them_back(
    root: Path, name: str, value: str
) -> None:
    for place in (".husky/_/pre-push", ".gitconfig", "tools/ssh.sh"):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text("#!/bin/sh\n")
        (root / place).chmod(0o755)
    git(root, "config", name, value)
    assert doubt(root, "git push origin main")


@pytest.mark.parametrize(
    "urls", [("/tmp/other/evil.git", "https://example.com/a"), ("ext::sh", "git@a.example:b")]
)
def test_each_address_of_a_remote_counts(root: Path, urls: tuple[str, str]) -> None:
    for url in urls:
        git(root, "config", "--add", "remote.origin.pushurl", url)
    assert doubt(root, "git push origin main")
    git(root, "config", "--unset-all", "remote.origin.pushurl")
    git(root, "config", "url.git@example.com:.insteadOf", "https://example.com/")
    assert doubt(root, "git push origin main") == ""


@pytest.mark.parametrize(
    "name", ["branch.main.remote", "branch.main.pushRemote", "remote.pushDefault"]
)
@pytest.mark.parametrize("value", ["/tmp/other/evil.git", "./evil.git", ".", "upstream"])
def test_a_default_remote_that_may_be_a_folder_holds_a_push_back(
    root: Path, name: str, value: str
) -> None:
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
    assert "pre-push hook" in doubt(root, "git push -o --no-verify origin")
    assert doubt(root, "git fetch") == ""


def test_what_surrounds_git_may_not_lie_in_the_project(root: Path) -> None:
    home = root.parent / "home"
    assert doubt(root, "git push", GIT_SSH_COMMAND=f"{root}/ssh")
    for name in ("GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL", "EDITOR"):
        assert doubt(root, "git pull --rebase=interactive", **{name: "./edit.sh"})
        assert doubt(root, "git pull", **{name: "vim"}) == ""
    (root / "bin").mkdir()
    assert doubt(root, "git push", PATH=f"{root}/bin:/usr/bin") == ""
    (root / "bin/ssh").write_text("x")
    assert doubt(root, "git push", PATH=f"{root}/bin:/usr/bin")
    (home / ".ssh").mkdir()
    (home / ".ssh/config").write_text(f"Host *\n  ProxyCommand {root}/proxy %h\n")
    assert "ssh/config" in doubt(root, "git push")


def write_inclusion(file: Path, path: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"[include]\n\tpath = {path}\n")


@pytest.mark.parametrize("path", ["../work/extra", "link/extra", "~/link/extra"])
def test_a_path_of_an_include_is_relative_to_the_file_that_names_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    home = root.parent / "home"
    (home / "link").symlink_to(root)
    write_inclusion(home / ".gitconfig", path)
    assert "include.path" in doubt(root, "git push")
    (root / "extra").write_text("[x]\n\ta = planted\n")
    monkeypatch.setenv("HOME", str(home))
    assert subprocess.check_output(["git", "config", "x.a"], cwd=root, text=True) == "planted\n"


def test_includes_of_the_user_that_stay_outside_of_the_project_let_a_push_out(root: Path) -> None:
    home = root.parent / "home"
    write_inclusion(home / ".gitconfig", "extra")
    assert doubt(root, "git push") == ""
    write_inclusion(home / "extra", "deeper/extra")
    assert doubt(root, "git push") == ""
    write_inclusion(home / "deeper/extra", "../../work/extra")
    assert "include.path" in doubt(root, "git push")


def test_a_file_of_settings_in_the_project_holds_a_push_back(root: Path) -> None:
    (root / "dotfiles").mkdir()
    settings = root / "dotfiles/gitconfig"
    settings.write_text("")
    (root.parent / "home/.gitconfig").symlink_to(settings)
    assert "gitconfig" in doubt(root, "git push")
    (root.parent / "home/.gitconfig").unlink()
    assert doubt(root, "git push") == ""
    # git changes to the top of the work tree before it reads them.
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        assert doubt(root, "git push", **{name: "dotfiles/gitconfig"})
    (root / ".git/config").rename(settings)
    (root / ".git/config").symlink_to(settings)
    assert doubt(root, "git push origin main")


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_DIR": "/tmp/other/.git"},
        {"GIT_COMMON_DIR": "/tmp/other/.git"},
        {"GIT_CONFIG_PARAMETERS": "'core.sshcommand'='./evil'"},
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.sshCommand",
            "GIT_CONFIG_VALUE_0": "./evil",
        },
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "include.path",
            "GIT_CONFIG_VALUE_0": "/tmp/other/extra",
        },
    ],
)
def test_variables_that_lead_git_to_other_settings_hold_a_push_back(
    root: Path, variables: dict[str, str]
) -> None:
    assert doubt(root, "git push", **variables)


def test_a_harmless_setting_in_a_variable_lets_a_push_out(root: Path) -> None:
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "gc.auto", "GIT_CONFIG_VALUE_0": "0"}
    assert doubt(root, "git push", **given) == ""


def test_hooks_count_wherever_an_include_may_set_their_folder(root: Path) -> None:
    home, hook = root.parent / "home", root / ".husky/pre-push"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\n")
    git(root, "config", "core.hooksPath", ".husky")
    write_inclusion(home / ".gitconfig", "extra")
    # The repository's own setting comes after it and wins.
    (home / "extra").write_text(f"[core]\n\thooksPath = {home}/hooks\n")
    assert "pre-push hook" in doubt(root, "git push")


@pytest.mark.parametrize(
    "line",
    [
        "cd web && git push; cd ..",
        "cd web > /dev/null && git push",
        "cd -- web && git push",
        "git push",
    ],
)
def test_a_push_may_leave_from_a_folder_of_the_project(root: Path, line: str) -> None:
    (root / "web").mkdir()
    # Not yet a repository.
    (root / "HEAD").write_text("ref: refs/heads/main\n")
    analysis = analyse_in(root, line)
    assert not analysis.proof.unproven
    assert doubt(root, *analysis.commands) == ""


@pytest.mark.parametrize("name", ["nested", "bare", "/tmp", "..", "link", ".git"])
def test_another_repository_holds_a_push_back(root: Path, name: str) -> None:
    for folder in ("nested/.git", "bare/objects", "bare/refs"):
        (root / folder).mkdir(parents=True)
    (root / "bare/HEAD").write_text("ref: refs/heads/main\n")
    (root / "link").symlink_to("/tmp")
    assert analyse_in(root, f"cd {name} && git push").proof.unproven
    assert analyse_in(root, "git push", name).proof.unproven


def test_a_repository_that_git_uses_if_a_command_breaks_the_projects_holds_a_push_back(
    root: Path,
) -> None:
    assert doubt(root, "git push") == ""
    git(root, "init", "-q", "--bare", ".")
    (root / ".git/HEAD").write_text("broken")
    found = subprocess.check_output(["git", "rev-parse", "--absolute-git-dir"], cwd=root, text=True)
    assert found.strip() == str(root), "git itself would take it"
    assert str(root) in doubt(root, "git push")
    parent = root / "packages"
    git(parent.parent, "init", "-q", str(parent / "app"))
    git(parent / "app", "remote", "add", "origin", "https://example.com/a/b.git")
    (parent / ".git").mkdir()
    assert str(parent) in UnsandboxedLineCheck(parent / "app", {}, (parent,)).find_doubt(
        ["git push"]
    )


def test_git_lfs_sends_files_nowhere_that_the_project_says(root: Path) -> None:
    """Its settings count where they lie in the project, else where they are staged,
    else where they are committed.
    """
    hook = root / ".git/hooks/pre-push"
    settings = root / ".lfsconfig"
    settings.write_text("[lfs]\n\turl = https://evil.example\n")
    assert doubt(root, "git push") == "", "no hook runs Git LFS"
    hook.write_text('#!/bin/sh\ngit lfs pre-push "$@"\n')
    hook.chmod(0o755)
    assert "Git LFS sends files" in doubt(root, "git push")
    assert doubt(root, "git push --no-verify") == ""
    git(root, "add", ".lfsconfig")
    settings.unlink()
    assert "staged" in doubt(root, "git push")
    git(root, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x")
    git(root, "rm", "-q", "--cached", ".lfsconfig")
    assert "committed" in doubt(root, "git push")
    settings.write_text("[lfs]\n\tfetchexclude = *.bin\n")
    assert doubt(root, "git push") == ""


def test_the_settings_of_git_lfs_are_guarded() -> None:
    assert is_protected("work/.lfsconfig")
