"""The hook `config` of extensions: asked once about a configuration, a layer of it from then on."""

from pathlib import Path

from codeloop.app.project import Project
from codeloop.app.settings import find_settings
from tests.support.project import in_process, startup, until

PLUGIN = """
from pathlib import Path

from codeloop.extension import hook


@hook("config")
def config(input, output):
    with Path({log!r}).open("a") as log:
        log.write("asked\\n")
    output["command"] = {{"go": {{"template": "Go far."}}}}
    output["permission"] = {permission!r}
    return output
"""


def written(tmp_path: Path, permission: object) -> Path:
    """Write a plugin of the person's; return where it says that it was asked."""
    plugin = tmp_path / "home" / "config" / "plugin" / "x.py"
    plugin.parent.mkdir(parents=True)
    log = tmp_path / "asked"
    plugin.write_text(PLUGIN.format(log=str(log), permission=permission))
    (tmp_path / "work").mkdir()
    return log


async def answered(project: Project) -> None:
    await until(lambda: project.settings.answer is not None and project.settings.answer.exists())


async def test_what_extensions_change_counts_once_it_is_known_and_is_asked_once(tmp_path: Path) -> None:
    log = written(tmp_path, {"bash": {"git push *": "deny"}})
    start = startup(tmp_path / "home", tmp_path / "work", model="local/m")
    async with in_process(start, None) as (project, _):
        assert "go" not in project.settings.config.command
        await answered(project)
        assert project.refresh()
    for model in ("local/m", "local/m", "local/given-for-one-run"):
        again = startup(tmp_path / "home", tmp_path / "work", model=model)
        async with in_process(again, None) as (project, _):
            assert project.settings.config.command["go"].template == "Go far."
            assert project.settings.config.model == model
            assert [rule.pattern for rule in project.settings.config.permission][-1] == "git push *"
    assert log.read_text() == "asked\n"


async def test_an_answer_that_makes_no_sense_is_told_and_left_out(tmp_path: Path) -> None:
    written(tmp_path, {"bash": 5})
    start = startup(tmp_path / "home", tmp_path / "work")
    async with in_process(start, None) as (project, _):
        await answered(project)
    settings = find_settings(start)
    assert "go" not in settings.config.command
    (warning,) = [each for each in settings.loaded.warnings if "extensions change" in each]
    assert "permission.bash" in warning


def test_without_extensions_nobody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    assert find_settings(startup(tmp_path / "home", tmp_path / "work")).answer is None
