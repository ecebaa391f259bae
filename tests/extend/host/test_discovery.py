"""Which extensions a project has, and what makes them others."""

from pathlib import Path

import pytest

from codeloop.app.settings import ProjectSettings, find_settings
from codeloop.schema.wire import replace
from tests.support.scripted_project import make_startup


def found(tmp_path: Path, **settings: object) -> ProjectSettings:
    (tmp_path / "work").mkdir(exist_ok=True)
    return find_settings(make_startup(tmp_path / "home", tmp_path / "work", **settings))


def own(tmp_path: Path, name: str, text: str = "def f(): ...\n") -> Path:
    file = tmp_path / "home" / "config" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_files_of_tool_and_plugin_folders_count_but_not_what_they_import(tmp_path: Path) -> None:
    for name in (
        "tool/a.py",
        "tools/b.ts",
        "plugin/c.js",
        "plugins/d.mjs",
        "tool/_e.py",
        "tool/f.txt",
        "tool/g.d.ts",
    ):
        own(tmp_path, name)
    extensions = found(tmp_path).extensions
    assert [(Path(each.path).name, each.kind, each.language) for each in extensions] == [
        ("a.py", "tool", "python"),
        ("b.ts", "tool", "javascript"),
        ("c.js", "plugin", "javascript"),
        ("d.mjs", "plugin", "javascript"),
    ]


def test_a_program_among_tools_is_one_if_it_knows_schema(tmp_path: Path) -> None:
    own(tmp_path, "tool/word.sh", "#!/bin/sh\n[ $1 = --schema ]\n").chmod(0o755)
    own(tmp_path, "tool/built", "\x7fELF").chmod(0o755)
    own(tmp_path, "tool/deploy.sh", "#!/bin/sh\nrm -r build\n").chmod(0o755)
    own(tmp_path, "tool/_helper.sh", "#!/bin/sh\n").chmod(0o755)
    own(tmp_path, "plugin/word.sh", "#!/bin/sh\n# schema\n").chmod(0o755)
    own(tmp_path, "tool/notes.txt")
    settings = found(tmp_path)
    assert [(Path(each.path).name, each.language) for each in settings.extensions] == [
        ("built", "python"),
        ("word.sh", "python"),
    ]
    (line,) = settings.loaded.warnings
    assert "deploy.sh: not a tool" in line


def test_tools_at_the_top_of_a_project_are_named_and_not_loaded(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name, text in (
        ("tool/jira.ts", 'import { tool } from "@opencode-ai/plugin"\n'),
        ("tools/build.ts", "console.log(1)\n"),
        ("tools/deploy.py", "print(1)\n"),
        ("opencode.config.ts", "export default {}\n"),
    ):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    settings = found(tmp_path)
    assert not settings.extensions
    first, second = settings.loaded.warnings
    assert (
        first
        == "tool/ (jira.ts) is not loaded: move it to .opencode/tool/, or name its files in `plugin`."
    )
    assert second.startswith("opencode.config.ts is not read")


def test_a_change_of_a_file_or_of_one_beside_it_makes_another_extension(tmp_path: Path) -> None:
    own(tmp_path, "tool/a.py")
    beside = own(tmp_path, "tool/_b.py", "x = 1\n")
    first = found(tmp_path).extensions[0].digest
    assert found(tmp_path).extensions[0].digest == first
    beside.write_text("x = 10\n")
    second = found(tmp_path).extensions[0].digest
    own(tmp_path, "tool/a.py", "def g(): ...\n")
    assert len({first, second, found(tmp_path).extensions[0].digest}) == 3


@pytest.mark.parametrize("name", ["plugin.py", "index.js"])
def test_a_change_of_any_file_of_a_configured_folder_makes_another_extension(
    tmp_path: Path, name: str
) -> None:
    file = own(tmp_path, f"mine/{name}")
    first = found(tmp_path, plugin=[str(file.parent)]).extensions[0].digest
    assert found(tmp_path, plugin=[str(file.parent)]).extensions[0].digest == first
    file.write_text("def other(): ...\n")
    assert found(tmp_path, plugin=[str(file.parent)]).extensions[0].digest != first


def test_entries_of_the_configuration_are_paths_with_options_or_said_to_be_none(
    tmp_path: Path,
) -> None:
    file = own(tmp_path, "mine.py")
    entries = [[str(file), {"colour": "red"}], "/nowhere.py", f"file://{file}", "not a name!"]
    settings = found(tmp_path, plugin=entries)
    assert {each.path: each.options for each in settings.extensions[:1]} == {
        str(file): {"colour": "red"}
    }
    said = "\n".join(settings.loaded.warnings)
    assert "/nowhere.py does not exist" in said
    assert "'not a name!' is neither a path" in said


def test_installed_distributions_bring_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "own-packages" / "mine-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[codeloop.plugins]\nmine = mine.plugin\n")
    monkeypatch.syspath_prepend(about.parent)
    (extension,) = found(tmp_path).extensions
    assert (extension.name, extension.kind, extension.path) == ("mine", "plugin", "mine.plugin")
    assert (tmp_path / "home" / "cache" / "entry_points.json").exists()
    assert found(tmp_path).extensions == (extension,)
    about = about.rename(about.with_name("mine-2.dist-info"))
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 2\n")
    (newer,) = found(tmp_path).extensions
    assert newer == replace(extension, digest=newer.digest)
    assert newer.digest != extension.digest, "what version 1 offered does not count"
