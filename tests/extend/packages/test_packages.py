"""Packages of extensions: named, installed, locked by hashes, and found as homes of a project."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from codeloop.app.settings import Startup, find_settings
from codeloop.config.paths import Paths, find_paths
from codeloop.config.trust.store import trust_directory
from codeloop.extend.packages.install import install, uninstall
from codeloop.extend.packages.lock_file import get_lock_path
from codeloop.extend.packages.plugin_entries import (
    PackageName,
    find_installed_package,
    get_package_folder,
    parse_package_name,
)
from codeloop.extend.packages.skeleton import write_skeleton
from codeloop.schema.errors import CodeloopError, UsageProblem

WEATHER = PackageName("pypi", "codeloop-weather")
NOTES = PackageName("npm", "@acme/notes")
METADATA = "Metadata-Version: 2.1\nName: codeloop_weather\nVersion: 1.0\n"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"CODELOOP_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)})


def putting(files: dict[str, str]) -> Callable[[Sequence[str]], None]:
    """Return what stands for pip and npm: it puts files where they are told to."""

    def run(command: Sequence[str]) -> None:
        top = Path(command[command.index("--target" if "--target" in command else "--prefix") + 1])
        for name, text in files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(text)

    return run


def program(name: str) -> str | None:
    return f"/bin/{name}"


WHEEL = {
    "codeloop_weather/__init__.py": "",
    "codeloop_weather-1.0.dist-info/METADATA": METADATA,
    "codeloop_weather-1.0.dist-info/entry_points.txt": "[codeloop.plugins]\nweather = codeloop_weather\n",
}
PACKAGE = {"node_modules/@acme/notes/package.json": '{"version": "2.0.0", "main": "a.js"}'}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("notes", PackageName("npm", "notes")),
        ("npm:notes@1.2.3", PackageName("npm", "notes", "1.2.3")),
        ("@acme/notes@^1", PackageName("npm", "@acme/notes", "^1")),
        ("pypi:codeloop-weather@1.0", PackageName("pypi", "codeloop-weather", "1.0")),
        *(
            (wrong, None)
            for wrong in (
                "",
                "..",
                "a b",
                "a/b",
                "pypi:",
                "@acme",
                "--target",
                "a;b",
                "git+ssh://x",
            )
        ),
    ],
)
def test_names_of_packages(written: str, meant: PackageName | None) -> None:
    assert parse_package_name(written) == meant


def test_what_is_installed_is_found_until_a_file_changes(paths: Paths) -> None:
    for package, files, entry in (
        (WEATHER, WHEEL, "plugin.py"),
        (NOTES, PACKAGE, "node_modules/@acme/notes"),
    ):
        folder = get_package_folder(paths, package)
        assert (
            "is not installed. `codeloop plugin add"
            in find_installed_package(paths, package.entry)[1]
        )
        lock = install(package, folder, program, putting(files))
        assert find_installed_package(paths, package.entry) == (folder / entry, "")
        assert lock.files.keys() >= {
            f"site/{name}" if package is WEATHER else name for name in files
        }
        other = f"{package.entry}@9.9"
        assert find_installed_package(paths, other)[1].startswith(
            f"{other} is wanted, {lock.version} is installed."
        )
        changed = folder / next(iter(lock.files))
        before = changed.read_text()
        changed.write_text(before + " ")
        path, why = find_installed_package(paths, package.entry)
        assert path is None
        assert why.startswith(
            f"{changed} has changed since {package.name} was installed, so it is left out."
        )
        changed.write_text(before)
        assert find_installed_package(paths, package.entry)[0] is not None
        (folder / "more.py").write_text("")
        assert "more.py has changed" in find_installed_package(paths, package.entry)[1]
        uninstall(folder)
        assert not folder.exists()
        assert not get_lock_path(folder).exists()


@pytest.mark.parametrize("version", ["latest", "^2", "2.0.0"])
def test_a_version_that_was_asked_for_is_the_one_that_is_wanted(paths: Paths, version: str) -> None:
    package = NOTES._replace(version=version)
    folder = get_package_folder(paths, package)
    install(package, folder, program, putting(PACKAGE))
    for entry in (f"@acme/notes@{version}", "@acme/notes@2.0.0", "@acme/notes"):
        assert find_installed_package(paths, entry) == (folder / "node_modules/@acme/notes", "")
    assert "is wanted" in find_installed_package(paths, "@acme/notes@~3")[1]
    install(NOTES, folder, program, putting(PACKAGE))
    assert find_installed_package(paths, "@acme/notes@latest")[0] is not None
    assert "is wanted" in find_installed_package(paths, "@acme/notes@^2")[1]


def test_a_package_that_is_named_twice_is_one_extension(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    environment = {"CODELOOP_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    install(NOTES, get_package_folder(find_paths(environment), NOTES), program, putting(PACKAGE))
    entries = ["@acme/notes@latest", ["npm:@acme/notes", {"colour": "red"}]]
    found = find_settings(
        Startup(directory=tmp_path / "work", environment=environment, settings={"plugin": entries})
    ).extensions
    assert [(each.name, each.options) for each in found] == [("@acme/notes", {"colour": "red"})]


def test_an_installation_that_fails_leaves_what_was_there(paths: Paths) -> None:
    folder = get_package_folder(paths, WEATHER)
    install(WEATHER, folder, program, putting(WHEEL))

    def fails(_command: Sequence[str]) -> None:
        raise CodeloopError("no network")

    with pytest.raises(CodeloopError, match="no network"):
        install(WEATHER, folder, program, fails)
    with pytest.raises(CodeloopError, match="neither is on the PATH"):
        install(NOTES, get_package_folder(paths, NOTES), lambda _: None, putting({}))
    with pytest.raises(CodeloopError, match="is not a plugin"):
        install(
            WEATHER, folder, program, putting({"codeloop_weather-1.0.dist-info/METADATA": METADATA})
        )
    assert find_installed_package(paths, "pypi:codeloop-weather")[0] == folder / "plugin.py"
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []


def test_a_package_is_a_home_of_the_project(tmp_path: Path) -> None:
    package = tmp_path / "my-words"
    write_skeleton(package, "my-words")
    (package / "plugin.json").write_text(
        '{"name": "my-words", "mcp": {"docs": {"type": "local", "command": ["docs"]}}}'
    )
    (tmp_path / "work").mkdir()
    environment = {"CODELOOP_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}

    def settings(**given: Any) -> Any:
        return find_settings(
            Startup(directory=tmp_path / "work", environment=environment, settings=given)
        )

    found = settings(plugin=[str(package)])
    assert found.loaded.warnings == ()
    assert {Path(each.path).name for each in found.extensions} == {
        "my_words_words.py",
        "my_words_guard.py",
    }
    assert "my-words" in found.config.command
    assert "my-words" in found.skills.by_name
    assert found.config.mcp.keys() == {"docs"}
    own = settings(plugin=[str(package)], mcp={"docs": {"type": "local", "command": ["mine"]}})
    assert json.dumps(own.config.mcp["docs"]).count("mine") == 1
    (package / "plugin.json").write_text('{"nam": "x"}')
    assert any(
        "needs at least a `name`" in line
        for line in settings(plugin=[str(package)]).loaded.warnings
    )


def test_a_skeleton_has_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name in ("there", "Two Words", "../up", "", "1st"):
        with pytest.raises(UsageProblem):
            write_skeleton(tmp_path / name, name)


def test_trust_ends_with_a_change_of_a_plugin_that_a_project_names_by_its_path(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    (work / "ours" / "tool").mkdir(parents=True)
    (work / "ours" / "tool" / "a.py").write_text("def a() -> str: ...\n")
    (work / "ours" / "plugin.json").write_text('{"name": "ours"}')
    names = ("one.py", "at home.py", "a b.py")
    for name in names:
        (work / name).write_text("def b() -> str: ...\n")
    entries = ["./ours", ["./one.py", {}], "$HOME/work/at home.py", f"file://{work}/a%20b.py"]
    (work / "codeloop.json").write_text(json.dumps({"plugin": entries}))
    environment = {"CODELOOP_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    here = Startup(directory=work, environment=environment)
    before = find_settings(here)
    assert before.extensions == ()
    trust_directory(before.paths, before.project_root.root, before.project_root.directory)
    assert len(find_settings(here).extensions) == 4
    for changed in ("ours/tool/a.py", *names):
        text = (work / changed).read_text()
        (work / changed).write_text(text + "x = 1\n")
        now = find_settings(here)
        assert (now.trusted, now.extensions) == (False, ()), changed
        (work / changed).write_text(text)
