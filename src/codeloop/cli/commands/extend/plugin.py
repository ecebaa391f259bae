"""`codeloop plugin`: adds and removes plugins, and writes new ones.

`plugin list` and `plugin debug` are in `plugin_reports.py`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from codeloop.app.settings import ProjectSettings
from codeloop.cli.commands.extend.installer import run_installer
from codeloop.cli.commands.extend.plugin_allow import allow
from codeloop.cli.commands.extend.plugin_reports import debug, list_plugins
from codeloop.cli.group import CommandGroup
from codeloop.cli.target.project import load_settings
from codeloop.config.config_text import add_to_list, remove_from_list
from codeloop.config.file_entries import choose_entry_file, edit_file
from codeloop.config.paths import get_plugin_name, get_plugin_path
from codeloop.config.trust.store import trust_changed_file
from codeloop.extend.packages.install import install, uninstall
from codeloop.extend.packages.lock_file import read_lock
from codeloop.extend.packages.manifest import CLAUDE_MANIFEST, MANIFEST, read_manifest
from codeloop.extend.packages.marketplace import MARKETPLACE, ListedPlugin, read_marketplace
from codeloop.extend.packages.plugin_entries import get_package_folder, parse_package_name
from codeloop.extend.packages.skeleton import write_skeleton
from codeloop.kit.programs import find_program
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.bounds.extension import PLUGIN_INSTALL
from codeloop.schema.errors import CodeloopError, UsageProblem

_CONFIG_KEY = "plugin"
# A folder with one of these may be a plugin also without a manifest.
_ENTRY_FILES = ("package.json", "__init__.py", "plugin.py", "extension.py")


@click.group(cls=CommandGroup)
def plugin() -> None:
    """Install, list, try and remove plugins, and write new ones."""


plugin.add_command(list_plugins)
plugin.add_command(debug)
plugin.add_command(allow)


@plugin.command()
@click.argument("name")
@click.argument("plugins", nargs=-1)
@click.option("--all", "adds_all", is_flag=True, help="Add every plugin of a marketplace.")
@click.option(
    "--project",
    "for_project",
    is_flag=True,
    help="Write it to this project's file instead of your own.",
)
def add(name: str, plugins: tuple[str, ...], *, adds_all: bool, for_project: bool) -> None:
    """Add a plugin: a package of npm (NAME), of PyPI (pypi:NAME), with @VERSION if you like,
    or a folder (./NAME). Of a marketplace's folder, the PLUGINS that you name.
    """
    settings = load_settings()
    folder = get_plugin_path(name, Path.cwd(), settings.paths)
    listed = read_marketplace(folder) if folder is not None else None
    # A folder may be a plugin and the marketplace that lists it.
    if (
        folder is not None
        and listed is not None
        and (plugins or adds_all or not _is_plugin(folder))
    ):
        for each in _choose_plugins(name, listed, plugins, adds_all=adds_all):
            _add_plugin(settings, str(each), for_project=for_project)
        return
    if plugins or adds_all:
        raise UsageProblem(f"{name} is no marketplace: it has no {MARKETPLACE}.")
    _add_plugin(settings, name, for_project=for_project)


def _choose_plugins(
    name: str, listed: list[ListedPlugin], wanted: Sequence[str], *, adds_all: bool
) -> list[Path]:
    """Return the folders of the wanted plugins of a marketplace. Raises UsageProblem."""
    here = {each.name: each.folder for each in listed if each.folder is not None}
    if not wanted and not adds_all:
        names = " ".join(map(escape_controls, here))
        raise UsageProblem(
            f"{name} is a marketplace. Name the plugins that you want, or say --all: "
            f"codeloop plugin add {name} PLUGIN...\nIts plugins: {names}"
        )
    elsewhere = {each.name: each.source for each in listed if each.folder is None}
    for each in wanted:
        if each in elsewhere:
            raise UsageProblem(
                f"{each} is not in this folder but at {elsewhere[each]}: clone that, "
                "and add the plugin's folder there."
            )
        if each not in here:
            raise UsageProblem(
                f"{name} has no plugin {each}.{format_suggestion(find_similar(each, list(here)))}"
            )
    if adds_all and elsewhere:
        click.echo(f"{len(elsewhere)} of its plugins are elsewhere and are not added.")
    return [here[each] for each in (here if adds_all else wanted)]


def _is_plugin(folder: Path) -> bool:
    return (folder / MANIFEST).exists() or (folder / CLAUDE_MANIFEST).is_file()


def _add_plugin(settings: ProjectSettings, name: str, *, for_project: bool) -> None:
    """Install a plugin, if it is a package, and write it to the configuration."""
    if (path := get_plugin_path(name, Path.cwd(), settings.paths)) is not None:
        entry = _make_path_entry(path, name, settings, for_project=for_project)
        # An entry for a path has no version.
        same_versions = {""}
    else:
        package = parse_package_name(name)
        if package is None:
            raise UsageProblem(
                f"{name!a} is not a valid package name. A folder is written ./{name}"
            )
        folder = get_package_folder(settings.paths, package)
        lock = install(
            package,
            folder,
            lambda program: find_program(program, settings.environment.get("PATH")),
            _run_install_command,
        )
        click.echo(
            f"Installed {package.name} {lock.version} in {folder}, {len(lock.files)} files, each with its hash."
        )
        entry = package.entry
        # An entry with another version is replaced.
        same_versions = {"", package.version, lock.version}
    file = _find_config_file(settings, for_project=for_project)
    is_same_plugin = _make_matcher(settings, file, name)

    def is_present(entry: Any) -> bool:
        package = parse_package_name(get_plugin_name(entry) or "")
        return is_same_plugin(entry) and (package is None or package.version in same_versions)

    edit_file(file, _CONFIG_KEY, lambda text: add_to_list(text, _CONFIG_KEY, entry, is_present))
    _keep_trust(settings, file, is_project=for_project)
    click.echo(f"Written to {file}.")
    if for_project and not settings.trusted:
        click.echo(
            "This directory is not trusted, so its plugins are ignored. Trust it: codeloop trust"
        )


def _make_path_entry(path: Path, name: str, settings: ProjectSettings, *, for_project: bool) -> str:
    """Return the entry of the configuration for a file or a folder.
    Raises UsageProblem if it is not a plugin.
    """
    if not path.exists():
        raise UsageProblem(f"{name} does not exist.")
    if (
        path.is_dir()
        and read_manifest(path) is None
        and not any((path / file).is_file() for file in _ENTRY_FILES)
    ):
        raise UsageProblem(
            f"{name} is not a plugin: it has no {MANIFEST}. `codeloop plugin new` writes a working one."
        )
    real_path = path.resolve()
    root = settings.project_root.root.resolve()
    # A project's own file may be used in other clones,
    # so paths within the project are relative to it.
    return (
        f"./{real_path.relative_to(root)}"
        if for_project and real_path.is_relative_to(root)
        else str(real_path)
    )


@plugin.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove a plugin: from the file that names it, and what was installed of it."""
    settings = load_settings()
    package = parse_package_name(name)
    files = [
        _find_config_file(settings, for_project=True),
        _find_config_file(settings, for_project=False),
    ]
    # Told one by one: the second file may not be writable.
    changed_files = [
        file for file in files if _remove_entry(settings, file, name, is_project=file == files[0])
    ]
    folder = get_package_folder(settings.paths, package) if package is not None else None
    is_installed = folder is not None and (folder.exists() or read_lock(folder) is not None)
    if folder is not None and is_installed:
        uninstall(folder)
        click.echo(f"Removed {folder}.")
    if not changed_files and not is_installed:
        raise UsageProblem(
            f"There is no plugin {escape_controls(name)} here. `codeloop plugin list` lists them."
        )


def _remove_entry(settings: ProjectSettings, file: Path, name: str, *, is_project: bool) -> bool:
    """Remove the entries of a plugin from a configuration file; return whether there was one.
    Raises CodeloopError.
    """
    is_match = _make_matcher(settings, file, name)
    if not file.exists() or not edit_file(
        file, _CONFIG_KEY, lambda text: remove_from_list(text or "", _CONFIG_KEY, is_match)
    ):
        return False
    _keep_trust(settings, file, is_project=is_project)
    click.echo(f"Removed from {file}.")
    return True


def _make_matcher(settings: ProjectSettings, file: Path, name: str) -> Callable[[Any], bool]:
    """Return a function that tells whether an entry of `file` is the plugin `name`,
    in any version.
    """
    # The name is relative to the current directory, an entry to the folder of its file.
    named_path = get_plugin_path(name, Path.cwd(), settings.paths) or Path.cwd() / name
    names = {name, str(named_path.resolve())}
    package = parse_package_name(name)
    if package is not None:
        names.add(package.entry)

    def is_same_plugin(entry: Any) -> bool:
        plugin = get_plugin_name(entry) or ""
        package = parse_package_name(plugin)
        path = get_plugin_path(plugin, file.parent, settings.paths)
        if path is not None:
            return str(path.resolve()) in names
        return plugin in names or (package is not None and package.entry in names)

    return is_same_plugin


@plugin.command()
@click.argument("name")
def new(name: str) -> None:
    """Write a plugin that works, with a test, into the new folder NAME."""
    folder = Path.cwd() / name
    for file in write_skeleton(folder, Path(name).name):
        click.echo(f"  {file.relative_to(Path.cwd())}")
    click.echo(f"Test it:  pytest {name}\nUse it:   codeloop plugin add ./{name}")


def _run_install_command(command: Sequence[str]) -> None:
    if code := run_installer(command, PLUGIN_INSTALL):
        raise CodeloopError(
            f"{Path(command[0]).name} failed with exit code {code}; nothing was installed or written."
        )


def _keep_trust(settings: ProjectSettings, file: Path, *, is_project: bool) -> None:
    """Trust the changed file of a trusted project."""
    # The user made the change, so it must not end the trust.
    if is_project and settings.trusted:
        trust_changed_file(
            settings.paths, settings.project_root.root, settings.project_root.directory, file
        )


def _find_config_file(settings: ProjectSettings, *, for_project: bool) -> Path:
    return choose_entry_file(settings.paths, settings.project_root if for_project else None)
