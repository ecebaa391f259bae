"""What the configuration of git names, wherever it stands,
and what is not git: no command changes what they run.
"""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.schema.limits import Limit
from codeloop.workspace.git.planted import known_repositories
from codeloop.workspace.git.planted.configured_files import ConfiguredFiles, find_configured_files
from tests.workspace.sandbox.conftest import Attacked
from tests.workspace.sandbox.test_planted import evil, git

__all__ = ["evil"]
NAME = "-c user.name=A -c user.email=a@example.com"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def by_home(it: Attacked, tree: Path) -> None:
    write(it.home / ".gitconfig", "[core]\n\thooksPath = .githooks # ours\n")


def by_include_in_home(it: Attacked, tree: Path) -> None:
    write(it.home / ".config/git/config", '[includeIf "gitdir:~/"]\n\tpath = more\n')
    write(it.home / ".config/git/more", '[core]\n\thooksPath = ".githooks"\n')


def by_include(it: Attacked, tree: Path) -> None:
    write(tree / "team.cfg", "[core]\n\thooksPath = .githooks\n")
    git(it, tree, "config", "include.path", str(tree / "team.cfg"))


def by_work_tree(it: Attacked, tree: Path) -> None:
    git(it, tree, "config", "extensions.worktreeConfig", "true")
    git(it, tree, "config", "--worktree", "core.hooksPath", ".githooks")


def by_repository(it: Attacked, tree: Path) -> None:
    git(it, tree, "config", "core.hooksPath", ".githooks")


def make_trees(it: Attacked) -> list[Path]:
    """Make a repository below the project and a submodule; return the three work trees."""
    git(it, it.root, "init", "-q", "inner")
    other = it.home.parent / "other"
    git(it, it.home.parent, "init", "-q", "other")
    git(it, other, *NAME.split(), "commit", "-qm", "a", "--allow-empty")
    git(it, it.root, "-c", "protocol.file.allow=always", "submodule", "add", str(other), "module")
    return [it.root, it.root / "inner", it.root / "module"]


@pytest.mark.slow
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize(
    "name", [by_home, by_include_in_home, by_include, by_work_tree, by_repository]
)
async def test_hooks_lie_wherever_settings_say_and_no_command_makes_or_changes_one(
    it: Attacked, evil: Path, name: Callable[[Attacked, Path], None], *, is_there: bool
) -> None:
    trees = make_trees(it)
    for tree in trees:
        name(it, tree)
        if is_there:
            write(tree / ".githooks/pre-commit", "#!/bin/sh\n")
            (tree / ".githooks/pre-commit").chmod(0o755)
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    plant = f"mkdir -p .githooks; cp {evil} .githooks/pre-commit; cp {evil} .githooks/post-commit"
    await it.run("; ".join(f"(cd {tree}; {plant})" for tree in trees))
    for tree in trees:
        git(it, tree, *NAME.split(), "commit", "-qm", "user", "--allow-empty")
        assert not (it.home / "planted").exists(), tree


@pytest.mark.slow
async def test_a_program_that_a_setting_names_is_not_made_by_a_command(
    it: Attacked, evil: Path
) -> None:
    git(it, it.root, "config", "alias.st", "!./tools/status --short")
    git(it, it.root, "config", "filter.x.clean", "tools/clean %f")
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    outcome = await it.run(
        f"mkdir tools; cp {evil} tools/status; cp {evil} tools/clean; cp {evil} tools/other"
    )
    assert [path.name for path in (it.root / "tools").iterdir()] == ["other"]
    assert {each.path.name for each in outcome.moved_files} == {"status", "clean"}


async def test_a_setting_of_a_new_repository_that_runs_a_program_at_the_next_clean_up_is_set_aside(
    it: Attacked, evil: Path
) -> None:
    await it.run(
        f"git init -q sub; git -C sub config gc.recentObjectsHook {evil}; git -C sub config gc.auto 5"
    )
    settings = (it.root / "sub/.git/config").read_text()
    assert "hook" not in settings.lower()
    assert "auto = 5" in settings


@pytest.mark.slow
@pytest.mark.parametrize("is_below", [True, False])
async def test_lines_for_a_rebase_of_the_user_run_nothing_more(
    it: Attacked, evil: Path, *, is_below: bool
) -> None:
    tree = it.root / "inner" if is_below else it.home.parent / "tree"
    if is_below:
        git(it, it.root, "init", "-q", "inner")
    else:
        git(it, it.root, "worktree", "add", "-q", str(tree))
    for name in "abc":
        write(tree / name, name)
        git(it, tree, "add", name)
        git(it, tree, *NAME.split(), "commit", "-qm", name)
    environment = {
        **it.place.environment,
        "GIT_SEQUENCE_EDITOR": "sed -i '1s/pick/edit/; $a exec true'",
    }
    words = ["git", *NAME.split(), "rebase", "-i", "HEAD~2"]
    subprocess.run(words, cwd=tree, env=environment, capture_output=True, check=False)
    todo = next(
        (it.root / "inner/.git" if is_below else it.root / ".git/worktrees").rglob(
            "git-rebase-todo"
        )
    )
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    outcome = await it.run(f"echo 'exec {evil}' >> {todo}")
    # Of a work tree elsewhere commands see no rebase at all, where folders can be mounted.
    assert "git-rebase-todo" in "".join(outcome.warnings) or (
        not is_below and it.backend != "landlock"
    )
    assert "exec true" in todo.read_text()
    git(it, tree, *NAME.split(), "rebase", "--continue")
    assert not (it.home / "planted").exists()


@pytest.mark.slow
async def test_a_link_in_a_repository_below_leads_the_users_git_nowhere(
    it: Attacked, evil: Path
) -> None:
    git(it, it.root, "init", "-q", "inner")
    inner = it.root / "inner"
    git(it, inner, *NAME.split(), "commit", "-qm", "a", "--allow-empty")
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    await it.run(f"rm -rf inner/.git/logs; ln -s {it.home} inner/.git/logs")
    git(it, inner, *NAME.split(), "commit", "-qm", "b", "--allow-empty")
    assert not (it.home / "HEAD").exists()


@pytest.mark.slow
@pytest.mark.parametrize("most", [2, 400])
async def test_no_heap_of_repositories_hides_one_from_what_is_looked_at(
    it: Attacked, evil: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(
        known_repositories, "NESTED_REPOSITORIES", Limit("sandbox.repositories", most, "count", "")
    )
    for name in ("a/1", "a/2", "a/3", "b/inner"):
        git(it, it.root, "init", "-q", name)
    git(it, it.root, "init", "-q", "--bare", "a.git")
    inner = it.root / "b/inner"
    git(it, inner, "config", "alias.mine", "!true")
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    assert (await it.run("git -C b/inner commit -q --allow-empty -m a")).warnings == ()
    assert "mine" in (inner / ".git/config").read_text()
    await it.run(
        f"cp {evil} b/inner/.git/hooks/pre-commit; printf '[core]\\nfsmonitor = {evil}\\n' >> b/inner/.git/config"
    )
    git(it, inner, "status")
    git(it, inner, *NAME.split(), "commit", "-qm", "user", "--allow-empty")
    assert not (it.home / "planted").exists()


@pytest.mark.parametrize(
    "name", [".hg/hgrc", ".sl/config", ".jj/repo/config.toml", "_darcs/prefs/defaults"]
)
async def test_settings_of_other_version_control_are_not_left_for_its_next_use(
    it: Attacked, name: str
) -> None:
    outcome = await it.run(f"mkdir -p $(dirname {name}); echo '[hooks]' > {name}; echo x > {name}2")
    assert not (it.root / name).exists()
    assert [each.path for each in outcome.moved_files] == [it.root / name]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GIT_CONFIG_GLOBAL", "git/config"),
        ("GIT_CONFIG_SYSTEM", "git/config"),
        ("XDG_CONFIG_HOME", "."),
    ],
)
def test_settings_to_which_a_variable_leads_are_relative_to_the_work_tree(
    tmp_path: Path, variable: str, value: str
) -> None:
    write(tmp_path / "git/config", "[core]\n\thooksPath = .githooks\n")
    given = {"HOME": str(tmp_path / "home"), variable: value}
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    path = subprocess.check_output(
        ["git", "rev-parse", "--git-path", "hooks"], cwd=tmp_path, text=True, env=given
    )
    assert path == ".githooks\n"
    assert list(find_configured_files([tmp_path / ".git"], tmp_path, [tmp_path], given)) == [
        tmp_path / ".githooks"
    ]


async def test_a_command_runs_in_a_repository_whose_settings_have_a_nul(it: Attacked) -> None:
    with (it.root / ".git/config").open("a") as config:
        config.write("[include]\n\tpath = /a\0b\n[core]\n\tsshCommand = ./a\0b\n")
    await it.shells.scan_work_tree(it.place, SandboxConfig())
    outcome = await it.run("echo ran")
    assert "ran" in outcome.output


def _age(*paths: Path) -> None:
    """Wait until the change times of some files are old enough to tell later changes from them."""
    newest = max(path.stat().st_ctime_ns for path in paths)
    while time.time_ns() < newest + 200_000_000:
        time.sleep(0.02)


@pytest.mark.slow
def test_configured_files_are_found_again_after_each_change_that_matters(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    for folder in (project / ".git", project / "tools", home):
        folder.mkdir(parents=True)
    config = project / ".git/config"
    config.write_text('[filter "clean"]\n\tclean = python3 ./tools/clean.py\n')
    (home / ".gitconfig").write_text("[core]\n\teditor = vim\n")
    given = {"HOME": str(home)}
    known = ConfiguredFiles([project], given)

    def find() -> list[Path]:
        _age(config, home / ".gitconfig")
        found = known.find([project / ".git"], project)
        assert found == list(find_configured_files([project / ".git"], project, [project], given))
        assert known.find([project / ".git"], project) == found
        return found

    script = project / "tools/clean.py"
    assert find() == [script]
    (project / "other").mkdir()
    assert find() == [script]
    # The setting is changed in place, and grows a hook folder.
    config.write_text(config.read_text() + "[core]\n\thooksPath = hooks\n")
    assert find() == [script, project / "hooks"]
    # The home's file appears elsewhere, and then leads into the project.
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/config").write_text(f"[include]\n\tpath = {project}/more\n")
    assert find() == [project / "more", script, project / "hooks"]
    (project / "more").write_text("[core]\n\tattributesFile = attributes\n")
    assert {*find()} == {project / "more", project / "attributes", script, project / "hooks"}
    (home / ".gitconfig").unlink()
    (home / ".gitconfig").symlink_to(project / "dotfile")
    (project / "dotfile").write_text("")
    assert project / "dotfile" in find()
    # A folder on the way is replaced by a link.
    (project / "tools").rename(project / "moved")
    (project / "tools").symlink_to("moved")
    assert project / "moved/clean.py" in find()
