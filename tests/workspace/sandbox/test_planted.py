"""What a sandboxed command leaves for git is not run, or followed,
by the git that the user runs next.
"""

import asyncio
import subprocess
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.sandbox.policy import SandboxGrants
from tests.workspace.sandbox.conftest import Attacked

IDENTITY = "-c user.name=A -c user.email=a@example.com"
CHECKS = (
    ("status",),
    ("status", "--ignore-submodules=none"),
    ("add", "-A"),
    ("commit", "-qm", "user", "--allow-empty"),
    ("checkout", "-q", "-f", "HEAD"),
    ("fetch", "--all", "-q"),
    ("submodule", "status"),
    ("rebase", "--continue"),
)


@pytest.fixture
async def evil(it: Attacked) -> Path:
    """A program in the project that leaves a mark in the home;
    it does so only outside of the sandbox.
    """
    program = it.root / "evil.sh"
    program.write_text(f"#!/bin/sh\necho x > {it.home}/planted\ncat\n")
    program.chmod(0o755)
    (it.root / "first").write_text("1")
    git(it, it.root, "add", "first")
    git(it, it.root, "commit", "-qm", "first")
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    # Linux stamps files by a clock that is some ms behind: what is changed now would seem
    # older than the survey's end.
    await asyncio.sleep(0.03)
    return program


def git(it: Attacked, folder: Path, *words: str) -> str:
    environment = {**it.place.environment, "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return (done.stdout + done.stderr).decode(errors="replace")


def use_git(it: Attacked) -> None:
    """Run git as its user would, in the project and in each repository below it."""
    folders = [
        it.root,
        *(path.parent for path in it.root.rglob(".git") if path != it.root / ".git"),
    ]
    folders += [path.parent for path in it.root.rglob("HEAD") if ".git" not in path.parts]
    for folder in folders:
        for words in CHECKS:
            git(it, folder, *words)
        git(it, folder, "st")


BEFORE = """
evil() { printf '[core]\n\tfsmonitor = %s\n\tsshCommand = %s\n[alias]\n\tst = !%s\n' $EVIL $EVIL $EVIL >> $1; }
commit() { touch a; git add a; git -c user.name=A -c user.email=a@example.com commit -qm a; }
nested() { git init -q ${1-sub}; (cd ${1-sub}; commit); }
"""
PLANTS = {
    "a nested repository": "nested; evil sub/.git/config; git add sub",
    "its hooks": "nested; for h in pre-commit post-checkout post-index-change; do cp evil.sh sub/.git/hooks/$h; done",
    "an include": "nested; evil sub/inc; git -C sub config include.path ../inc",
    "hooksPath": "nested; mkdir h; cp evil.sh h/pre-commit; git -C sub config core.hooksPath ../h",
    "a filter": """
        nested; git -C sub config filter.x.clean $EVIL; git -C sub config filter.x.smudge $EVIL
        mkdir -p sub/.git/info; echo '* filter=x' | tee sub/.git/info/attributes > sub/.gitattributes
    """,
    "config.worktree": "nested; git -C sub config extensions.worktreeConfig true; evil sub/.git/config.worktree",
    "a bare repository": "git init -q --bare b; evil b/config; printf '[core]\\nbare=0\\nworktree=.\\n' >> b/config",
    "a gitlink in node_modules": "nested node_modules/m; evil node_modules/m/.git/config; git add -f node_modules/m",
    "a work tree": "git worktree add -q w; evil .git/worktrees/w/config.worktree",
    "a commondir": """
        git worktree add -q w; cp -r .git c; evil c/config; echo $PWD/c > .git/worktrees/w/commondir
    """,
    "a .git file": "git init -q --bare other.git; evil other.git/config; mkdir d; echo gitdir: ../other.git > d/.git",
    "a .git link": "git init -q other; evil other/.git/config; mkdir e; ln -s ../other/.git e/.git",
    "odd lines": """
        nested; cd sub/.git
        printf '[core]\\n fsmonitor=\\\\\\n%s\\n[a]fsmonitor=x\\n[core]fsmonitor=%s\\n' $EVIL $EVIL >> config
    """,
    "a long file": "nested; yes '# x' | head -c 400000 >> sub/.git/config; evil sub/.git/config",
    "a rebase": """
        mkdir -p .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD | tee onto orig-head > /dev/null
        echo refs/heads/master > head-name; touch done interactive; echo 1 | tee msgnum > end
        echo "exec $EVIL" > git-rebase-todo
    """,
    "the project's own": "evil .git/config; cp evil.sh .git/hooks/pre-commit",
    "in many folders": "mkdir -p $(seq 500) deep/x; cd deep/x; git init -q; evil .git/config",
}


@pytest.mark.slow
async def test_what_a_command_plants_is_not_run_by_the_users_git(it: Attacked, evil: Path) -> None:
    for name, attack in PLANTS.items():
        await it.run(f"cd {it.root}; EVIL={evil}\n{BEFORE}\n{attack}")
        use_git(it)
        assert not (it.home / "planted").exists(), name
        git(it, it.root, "rebase", "--abort")


@pytest.mark.slow
async def test_a_project_without_git_gets_none_that_runs_programs(it: Attacked, evil: Path) -> None:
    root = it.home / "plain"
    root.mkdir()
    plain = moved(it, root)
    (root / "evil.sh").write_bytes(evil.read_bytes())
    (root / "evil.sh").chmod(0o755)
    await plain.shells.scan_work_tree(plain.place, SandboxConfig(network="off"))
    outcome = await plain.run(f"EVIL={root}/evil.sh\n{BEFORE}\ngit init -q; evil .git/config")
    assert (root / ".git").is_dir(), outcome
    use_git(plain)
    assert not (it.home / "planted").exists()
    assert "core" in (root / ".git/config").read_text()
    assert any("Set aside" in warning and ".git/config" in warning for warning in outcome.warnings)


@pytest.mark.slow
async def test_another_repository_of_the_user_is_not_written(it: Attacked, evil: Path) -> None:
    other = it.home / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    before = sorted(path for path in other.rglob("*"))
    root = it.home / "plain"
    root.mkdir()
    plain = moved(it, root)
    await plain.shells.scan_work_tree(plain.place, SandboxConfig(network="off"))
    await plain.run(f"echo 'gitdir: {other}/.git' > .git; mkdir s; cp .git s/")
    assert not (root / "s/.git").exists()
    (root / ".git").write_text(f"gitdir: {other}/.git\n")  # it came with the project's files
    await plain.run(
        f"echo x > {other}/.git/hooks/post-checkout; echo x > {other}/.git/x; git commit --allow-empty -m x"
    )
    assert sorted(path for path in other.rglob("*")) == before


@pytest.mark.slow
async def test_links_in_the_git_directory_lead_nobody_elsewhere(it: Attacked, evil: Path) -> None:
    victim = it.home / "victim"
    victim.write_text("kept")
    await it.run(
        f"rm -rf .git/logs; mkdir .git/logs; ln -s {victim} .git/logs/HEAD; ln -sf {victim} .git/COMMIT_EDITMSG;"
        f" rm -f .git/index; ln -s {victim} .git/index; mkdir -p .git/refs/heads/x; ln -s {victim} .git/refs/heads/x/y"
    )
    use_git(it)
    assert victim.read_text() == "kept"


@pytest.mark.slow
async def test_the_users_own_repositories_stay_as_they_are(it: Attacked, evil: Path) -> None:
    inner = it.root / "inner"
    inner.mkdir()
    git(it, inner, "init", "-q")
    (inner / ".git/hooks/pre-commit").write_text("mine")
    git(it, inner, "config", "core.fsmonitor", "mine")
    git(it, it.root, "worktree", "add", "-q", str(it.home / "tree"))
    before = {path: path.read_bytes() for path in (inner / ".git").rglob("*") if path.is_file()}
    pointers = (it.root / ".git/worktrees/tree/commondir", it.root / ".git/worktrees/tree/gitdir")
    outcome = await it.run("true")
    assert outcome.warnings == ()
    moves = "" if it.backend == "landlock" else "mv inner/.git inner/g; mv inner i;"
    await it.run(
        f"echo x >> inner/.git/config; echo x > inner/.git/hooks/pre-commit; {moves}"
        " for f in commondir gitdir; do echo $PWD/inner > .git/worktrees/tree/$f; done;"
        " echo x > inner/.git/info/attributes"
    )
    assert {
        path: path.read_bytes() for path in (inner / ".git").rglob("*") if path.is_file()
    } == before
    assert [path.read_text().strip() for path in pointers] == ["../..", str(it.home / "tree/.git")]


@pytest.mark.slow
async def test_a_repository_that_the_user_just_made_is_protected_from_the_next_command(
    it: Attacked, evil: Path
) -> None:
    git(it, it.root, "init", "-q", "lib")
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    await it.run(
        f"EVIL={evil}\n{BEFORE}\nevil lib/.git/config; mv lib l2; git init -q lib; evil lib/.git/config"
    )
    use_git(it)
    assert not (it.home / "planted").exists()


@pytest.mark.slow
async def test_what_stands_in_for_a_protected_file_that_was_moved_with_its_folder_is_set_aside(
    it: Attacked, evil: Path
) -> None:
    git(it, it.root, "init", "-q", "--bare", ".git/modules/x")
    (it.root / "dist/sub").mkdir(parents=True)
    (it.root / "dist/sub/f").write_text("kept")
    outcome = await it.run(
        f"EVIL={evil}\n{BEFORE}\ncp -r .git/modules m; mv .git/modules .git/m2; mv m .git/modules;"
        " evil .git/modules/x/config;"
        " mv dist d2; mkdir -p dist/sub; echo x > dist/sub/f; echo x >> d2/sub/f",
        SandboxGrants(unwritable=(it.root / "dist/sub/f",)),
    )
    use_git(it)
    git(it, it.root / ".git/modules/x", "st")
    assert not (it.home / "planted").exists()
    if it.backend != "landlock":
        found = [path.read_text() for path in it.root.rglob("sub/f")]
        assert found == ["kept"], outcome


@pytest.mark.slow
async def test_what_the_users_configuration_names_in_the_project_is_only_read(
    it: Attacked, evil: Path
) -> None:
    for name in (
        ".githooks/pre-commit",
        ".husky/_/pre-commit",
        ".husky/pre-commit",
        "tools/clean.sh",
        "smudge.py",
        "settings",
    ):
        (it.root / name).parent.mkdir(parents=True, exist_ok=True)
        (it.root / name).write_text("# mine")
    for setting in (
        ("core.hooksPath", ".husky/_"),
        ("filter.x.clean", "./tools/clean.sh %f"),
        ("filter.x.smudge", "python3 smudge.py"),
        ("include.path", "../settings"),
    ):
        git(it, it.root, "config", *setting)
    await it.run(
        "for f in .husky/_/pre-commit .husky/pre-commit tools/clean.sh smudge.py; do echo x > $f; done;"
        " echo x > settings"
    )
    for name in (
        ".husky/_/pre-commit",
        ".husky/pre-commit",
        "tools/clean.sh",
        "smudge.py",
        "settings",
    ):
        assert (it.root / name).read_text() == "# mine", name


@pytest.mark.slow
async def test_everyday_git_works_and_is_left_alone(it: Attacked, evil: Path) -> None:
    outcome = await it.run(
        f"git init -q sub && cd sub && echo 1 > a && git add a && git {IDENTITY} commit -qm a && cd .. &&"
        " git clone -q sub copy && git clone -q --bare sub bare.git && git worktree add -q w && cd w && echo 2 > b &&"
        " git add b && git commit -qm b && cd .. && git worktree remove w && git branch -D w && rm -rf copy bare.git &&"
        f" git init -q lib && cd lib && touch a && git add a && git {IDENTITY} commit -qm a && cd .. &&"
        " git worktree add -q v && cd v && echo 2 > c && git add c && git commit -qm c && git log --oneline | wc -l"
    )
    assert (outcome.code, outcome.warnings) == (0, ()), outcome.output
    second = await it.run(
        "cd .. && git worktree remove --force v && rm -rf sub lib && git status --short"
    )
    assert (second.code, second.warnings) == (0, ()), second.output


def moved(it: Attacked, root: Path) -> Attacked:
    """Return commands in another project."""
    context = replace(it.context, session="ses_2", directory=root)
    return it._replace(
        root=root, place=replace(it.place, root=root, directory=root), context=context
    )
