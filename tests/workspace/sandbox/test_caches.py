"""The caches of the user: commands read them,
and nothing that a command writes there reaches them.
"""

import os
from pathlib import Path

import pytest

from codeloop.workspace.process.shells import Shells
from codeloop.workspace.sandbox.policy import SandboxGrants
from codeloop.workspace.sandbox.private_folders import prune_private_folders
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.workspace.sandbox.conftest import Attacked

CACHES = (
    *(
        ".npm/_npx/1/index.js",
        ".cache/uv/archive-v0/a/m.py",
        ".cache/pip/http/a",
        ".cache/pre-commit/repo/hook.py",
    ),
    *(
        ".bun/install/cache/p/index.js",
        ".cache/node/corepack/v1/pnpm/bin.js",
        ".pub-cache/bin/tool",
    ),
    *(
        ".gradle/wrapper/dists/g/gradle",
        ".nuget/packages/p/p.dll",
        ".cargo/registry/src/c/lib.rs",
        "go/pkg/mod/m/m.go",
    ),
    *(
        ".m2/repository/a.jar",
        ".m2/wrapper/dists/mvn",
        ".cache/deno/npm/a.js",
        ".local/share/pnpm/store/v3/files/a",
    ),
)


@pytest.fixture
def caches(it: Attacked) -> Attacked:
    for name in CACHES:
        path = it.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("the user's\n")
    it.shells._work_trees._policy_makers.clear()
    return it


ATTACKS = (
    "echo x > {}",
    "echo x >> {}",
    "rm -f {}",
    "mv {} gone",
    "mv other {}",
    "ln -sf /bin/true {}",
    "ln {} hard && echo x > hard",
    "ln {0} {0}.hard && echo x > {0}.hard",
    "truncate -s 0 {}",
    "python3 -c 'import os; os.open(\"{}\", os.O_RDWR | os.O_TRUNC)'",
    "dd if=/dev/zero of={} bs=1 count=1 conv=notrunc",
)
"""Each is tried on a file of its own in every cache."""
LAST = (
    "cd $(dirname {}) && mkdir ../made && mv ../made/.. ../../moved",
    "rm -rf $(dirname {})",
)


@pytest.mark.slow
async def test_no_cache_of_the_user_is_changed(caches: Attacked) -> None:
    it = caches
    files = {
        attack: [f"{it.home / name}.{at}" for name in CACHES] for at, attack in enumerate(ATTACKS)
    }
    for path in (path for paths in files.values() for path in paths):
        Path(path).write_text("the user's\n")
    before = tree(it.home)
    await it.run(
        "; ".join(
            f"(touch other; {attack.format(path)})" for attack in ATTACKS for path in files[attack]
        )
    )
    assert tree(it.home) == before
    for attack in LAST:
        await it.run("; ".join(f"({attack.format(it.home / name)})" for name in CACHES))
        assert tree(it.home) == before, attack


def tree(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Return links, mode and content of each file but ours."""
    found = {}
    for top, names, files in os.walk(folder):
        names[:] = [name for name in names if name != "codeloop"]
        for name in files:
            path = Path(top, name)
            found[str(path)] = (path.lstat().st_nlink, path.lstat().st_mode, path.read_text())
    return found


def anew(it: Attacked) -> Attacked:
    """Return the same in another process, as far as sandboxes go."""
    shells = Shells()
    shells.sandboxes = Sandboxes(shells.launcher, (it.backend,))
    return it._replace(shells=shells)


@pytest.mark.slow
async def test_what_a_command_puts_into_a_cache_is_there_for_the_next_one_and_the_next_session(
    caches: Attacked,
) -> None:
    it = caches
    if it.backend == "landlock":
        pytest.skip("there, variables lead tools to caches of the project's own")
    place = it.home / ".npm/_npx/1"
    change = f"echo more > {place}/new; echo changed > {place}/index.js; cat {place}/*"
    seen = await it.run(f"mkdir -p {place}; cat {place}/index.js; {change}")
    if it.backend == "namespaces":
        assert seen.output == "the user's\nchanged\nmore\n"
    await it.shells.close()
    later = anew(it)
    assert (await later.run(f"cat {place}/*")).output == "changed\nmore\n"
    await later.shells.close()
    assert (place / "index.js").read_text() == "the user's\n"


async def test_tools_that_link_from_caches_are_told_to_copy(it: Attacked) -> None:
    shown = (await it.run('echo "$UV_LINK_MODE $pnpm_config_store_dir"')).output
    assert shown == (
        f"copy {it.home}/.local/share/pnpm/store\n" if it.backend != "landlock" else " \n"
    )


async def test_a_cache_that_is_not_there_yet_is_the_projects_own(it: Attacked) -> None:
    if it.backend == "landlock":
        pytest.skip("there, variables lead tools to caches of the project's own")
    outcome = await it.run(
        "mkdir -p ~/.cache/uv ~/.made && echo x > ~/.cache/uv/a && cat ~/.cache/uv/a"
    )
    assert outcome.output == "x\n"
    assert not (it.home / ".cache/uv").exists()
    assert not (it.home / ".made").exists()


async def test_variables_lead_tools_where_caches_can_not_be_layered(caches: Attacked) -> None:
    if caches.backend != "landlock":
        pytest.skip("caches are layered")
    outcome = await caches.run(
        'echo x > "$UV_CACHE_DIR" || mkdir -p "$UV_CACHE_DIR" && echo y > "$UV_CACHE_DIR/a"'
    )
    assert outcome.code == 0, outcome.output
    assert not (caches.home / ".cache/uv/a").exists()


@pytest.mark.slow
async def test_two_processes_of_one_project_have_layers_of_their_own(caches: Attacked) -> None:
    if caches.backend == "landlock":
        pytest.skip("nothing is layered")
    place = caches.home / ".npm"
    await caches.run(f"echo first > {place}/a")
    second = anew(caches)
    try:
        assert (
            await second.run(f"cat {place}/a; echo second > {place}/a; cat {place}/a")
        ).output.endswith("second\n")
    finally:
        await second.shells.close()
    assert (await caches.run(f"cat {place}/a")).output == "first\n"


@pytest.mark.slow
async def test_two_policies_of_one_process_share_one_layer(caches: Attacked) -> None:
    if caches.backend == "landlock":
        pytest.skip("nothing is layered")
    place, granted = caches.home / ".npm", caches.home.parent / "elsewhere"
    await caches.run(f"echo first > {place}/a")
    both = await caches.run(
        f"cat {place}/a; echo second > {place}/a", SandboxGrants(writable=(granted,))
    )
    assert both.output == "first\n"
    assert (await caches.run(f"cat {place}/a")).output == "second\n"


@pytest.mark.slow
async def test_a_private_folder_is_removed_when_it_is_old_or_large_and_nobody_has_it(
    caches: Attacked,
) -> None:
    scratch, private = caches.place.scratch, caches.place.private_folder
    await caches.run(
        f"head -c 2000000 /dev/zero > {caches.home}/.npm/large; mkdir -p ~/.m/n; chmod 0 ~/.m/n"
    )
    prune_private_folders(scratch, max_age=0, max_bytes=0)
    assert (private / "1").is_dir(), "a process has it"
    await caches.shells.close()
    prune_private_folders(scratch)
    assert (private / "1").is_dir()
    prune_private_folders(scratch, max_bytes=1_000)
    if caches.backend != "landlock":
        assert not (private / "1").exists()


async def test_a_layer_leaves_no_folder_that_its_user_can_not_enter(caches: Attacked) -> None:
    """The kernel makes a folder of mode 000 for each overlay, which `rm -r`,
    `find` and backups fail on.
    """
    private = caches.place.private_folder
    await caches.run(f"echo x > {caches.home}/.npm/a")
    while_it_runs = [
        path for path in private.rglob("*") if path.is_dir() and not path.stat().st_mode & 0o700
    ]
    assert not while_it_runs
    await caches.shells.close()
    assert list(private.rglob("work")) == []
    assert caches.backend != "namespaces" or list(private.glob("1/*/upper"))
