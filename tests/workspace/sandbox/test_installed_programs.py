"""Programs that are installed below a folder that sandboxes replace run there,
with what belongs to them.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.process.shells import ShellCommand
from codeloop.workspace.sandbox.named_paths import find_named_paths
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.program_profile import (
    ProfilePolicyMaker,
    ProgramProfile,
)
from tests.workspace.sandbox.conftest import SECRET, Attacked


def on_path(it: Attacked, folder: Path) -> Attacked:
    """Return the same commands with a folder in their PATH."""
    environment = {**it.place.environment, "PATH": f"{folder}:{it.place.environment['PATH']}"}
    it.shells._work_trees._policy_makers.clear()
    return it._replace(
        place=PolicyInput(it.root, it.root, it.place.scratch, environment, it.place.own_folders),
        context=type(it.context)("ses_2", it.root, environment, it.place.scratch),
    )


def install(prefix: Path) -> Path:
    """Install a program that reads a file of its own; return the folder it is in."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "greeting").write_text("hello\n")
    (prefix / "bin" / "greet").write_text('#!/bin/sh\ncat "${0%/bin/greet}/lib/greeting"\n')
    (prefix / "bin" / "greet").chmod(0o755)
    return prefix / "bin"


@pytest.mark.slow
async def test_a_program_of_the_path_sees_what_it_was_installed_with(
    it: Attacked, tmp_path: Path
) -> None:
    outcome = await on_path(it, install(tmp_path / "installed")).run(
        "greet; echo x > ../installed/lib/new"
    )
    assert outcome.output.startswith("hello\n"), outcome.output
    assert not (tmp_path / "installed/lib/new").exists()


async def test_a_project_may_change_the_environment_in_it_that_is_active(it: Attacked) -> None:
    outcome = await on_path(it, install(it.root / ".venv")).run(
        "greet && echo x > .venv/bin/new && echo x > .venv/lib/new"
    )
    assert (outcome.code, outcome.output) == (0, "hello\n")


@pytest.mark.slow
async def test_the_interpreter_that_codeloop_runs_on_is_there(it: Attacked) -> None:
    outcome = await it.run(
        f"'{sys.executable}' -c 'import codeloop, msgspec; print(codeloop.__name__)'"
    )
    assert outcome.output == "codeloop\n"


SHIM = "exec {top}/libexec/manager"
CHOSEN = "exec {top}/versions/3.2.1/bin/greet"
GREET = "cat {top}/{at}"
LAYOUTS = {
    "pyenv, cloned": (
        "shims",
        {"shims/greet": SHIM, "libexec/manager": CHOSEN, ".git/config": SECRET},
        "versions/3.2.1",
    ),
    "rbenv, apart": ("shims", {"shims/greet": CHOSEN}, "versions/3.2.1"),
    "asdf, cloned": (
        "shims",
        {"shims/greet": GREET, "asdf.sh": "", ".git/config": SECRET},
        "installs/ruby/3.2.1",
    ),
    "mise": ("shims", {"shims/greet": GREET}, "installs/node/20"),
    "a version of mise": (
        "installs/node/20/bin",
        {"installs/node/20/bin/greet": GREET},
        "installs/node/20",
    ),
    "nvm, cloned": (
        "versions/node/20/bin",
        {"versions/node/20/bin/greet": GREET, ".git/x": ""},
        "versions/node/20",
    ),
    "go from source": (
        "bin",
        {"bin/greet": GREET, "VERSION": "", "src/make.bash": "", ".git/config": SECRET},
        "src/fmt",
    ),
    "flutter": (
        "bin",
        {"bin/greet": GREET, "bin/internal/engine.version": "", ".git/config": SECRET},
        "packages/f",
    ),
    "brew": ("bin", {"bin/greet": GREET, "Cellar/x": "", ".git/config": SECRET}, "opt/greet"),
    "gems": ("bin", {"bin/greet": GREET, "specifications/x": ""}, "gems/greet"),
    "composer": (
        "vendor/bin",
        {"vendor/bin/greet": GREET, "vendor/autoload.php": ""},
        "vendor/greet",
    ),
    "a nix profile": (
        "profile/bin",
        {"store/1/bin/greet": GREET, "profile": "@store/1"},
        "store/1",
    ),
    "conda": ("envs/a/bin", {"envs/a/bin/greet": GREET, "envs/a/conda-meta/x": ""}, "envs/a"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
async def test_a_tool_that_is_installed_anywhere_runs(it: Attacked, name: str) -> None:
    folder, files, holds = LAYOUTS[name]
    top, greeting = it.home / "Documents/tools", f"{holds}/lib/greeting"
    for path, text in {**files, f"{holds}/bin/greet": GREET, greeting: "hello\n"}.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("@"):
            (top / path).symlink_to(top / text[1:])
        elif text in {SHIM, CHOSEN, GREET}:
            (top / path).write_text("#!/bin/sh\n" + text.format(top=top, at=greeting) + "\n")
            (top / path).chmod(0o755)
        else:
            (top / path).write_text(text)
    (top.parent / "letter").write_text(SECRET)
    outcome = await on_path(it, top / folder).run(f"greet; cat {top}/.git/config {top}/../letter")
    assert outcome.output.startswith("hello\n"), outcome.output
    assert SECRET not in outcome.output


@pytest.mark.slow
@pytest.mark.parametrize("named", ["PATH", "VIRTUAL_ENV"])
async def test_a_virtual_environment_anywhere_is_the_one_that_runs(
    it: Attacked, tmp_path: Path, named: str
) -> None:
    environment = tmp_path / "elsewhere/env"
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    subprocess.run([base, "-m", "venv", "--without-pip", environment], check=True)
    where = {
        "PATH": f"{environment}/bin:{it.place.environment['PATH']}",
        "VIRTUAL_ENV": str(environment),
    }
    found = {**it.place.environment, named: where[named]}
    place = replace(it.place, environment=found)
    active = it._replace(
        place=place, context=replace(it.context, session="ses_2", environment=found)
    )
    it.shells._work_trees._policy_makers.clear()
    python = "python" if named == "PATH" else f"{environment}/bin/python"
    ask = "import sys, sysconfig; print(sys.prefix)"
    assert (await active.run(f"{python} -c '{ask}'")).output == f"{environment}\n"
    library = next(environment.glob("lib/python3*/site-packages"))
    # As a command outside the sandbox installs it.
    (library / "fresh.py").write_text("print('fresh')")
    assert (await active.run(f"{python} -m fresh")).output == "fresh\n"


LEADING_OUT = """
    mkdir -p .venv/bin node_modules/.bin env/bin vendor e; touch env/pyvenv.cfg
    ln -s $D/letter.txt .venv/bin/x; ln -s $D/bin/tool .venv/bin/y; echo home = $D/bin > .venv/pyvenv.cfg
    ln -s $D/letter.txt node_modules/.bin/x; ln -s $D env/lib; ln -s $D vendor/bin; ln -s $D venv
    ln -s $D active; ln -s $D cache; ln -s $D out; ln -s $D/letter.txt gitconfig; ln -s $D/letter.txt e/tool
"""


@pytest.mark.slow
async def test_no_link_of_the_project_shows_or_opens_what_it_leads_to(it: Attacked) -> None:
    documents = it.home / "Documents"
    for name in ("letter.txt", "bin/tool", "bin/note"):
        (documents / name).parent.mkdir(parents=True, exist_ok=True)
        (documents / name).write_text(SECRET)
    (it.home / ".local/bin").mkdir(parents=True)
    (it.home / ".local/bin/tool").symlink_to(it.root / "e/tool")
    (it.home / ".gitconfig").symlink_to(it.root / "gitconfig")
    paths = f"{it.root}/active/bin:{it.root}/.venv/bin:{it.home}/.local/bin:{it.place.environment['PATH']}"
    environment = {
        "VIRTUAL_ENV": f"{it.root}/active",
        "UV_CACHE_DIR": f"{it.root}/cache",
        "PATH": paths,
    }
    environment = {**it.place.environment, **environment}
    place, context = (
        replace(it.place, environment=environment),
        replace(it.context, environment=environment),
    )
    config = SandboxConfig(network="off", writable=["out"], readable=["out"])
    for text in (
        f"D={documents}; {LEADING_OUT}",
        f"grep -rs . {documents} */; cat e/* gitconfig */letter.txt; > out/new",
    ):
        it.shells._work_trees._policy_makers.clear()
        policy = it.shells.make_policy(place, config)
        outcome = await it.shells.run(
            context, ShellCommand(text, 120, None, policy), lambda _: None
        )
        assert SECRET not in outcome.output
    assert not (documents / "new").exists()


def test_a_program_gets_nothing_by_a_link_of_the_project(tmp_path: Path) -> None:
    root, other = tmp_path / "work", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (root / "data").symlink_to(other)
    place = PolicyInput(
        root, root, tmp_path / "scratch", {"PATH": "/usr/bin", "HOME": str(tmp_path / "home")}
    )
    profile = ProgramProfile(tmp_path / "own", writable=(root / "data",), readable=(root / "data",))
    policy = ProfilePolicyMaker(profile, place, SandboxConfig()).make_policy()
    assert other not in (*policy.writable, *policy.visible)


def test_a_virtual_environment_that_a_command_names_is_shown_whole(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").touch()
    (environment / "pyvenv.cfg").touch()
    script = tmp_path / "tools" / "server.py"
    script.parent.mkdir()
    script.touch()
    words = (str(environment / "bin" / "python"), str(script))
    named = find_named_paths(words, (), tmp_path / "home")
    assert {environment, script.parent} <= {*named.code}
