"""Skills: where they are found, what is refused, what the model sees and reads."""

from pathlib import Path

import pytest

from codeloop.extend.skills import filter_skills, format_skill_list, make_skill_tool
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.permission.gate import Denied
from codeloop.schema.api.agents import SKILL_LIST
from codeloop.schema.limits import SKILL_FILES, SKILL_LISTING
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionRule
from codeloop.tool.tool import ToolFailure
from tests.extend.settings import settings_of, write
from tests.support.scripted_project import make_answer, make_call, open_scripted_project
from tests.tool.context import make_context


def skill(
    tmp_path: Path,
    folder: str,
    name: str = "pdf",
    description: str = "Reads PDFs",
    body: str = "Do it.",
) -> Path:
    """Write a skill."""
    return write(
        tmp_path,
        f"{folder}/{name}/SKILL.md",
        f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n",
    )


@pytest.mark.parametrize(
    "folder",
    [
        "work/.codeloop/skills",
        "work/.opencode/skill",
        "work/.claude/skills",
        "work/.agents/skills",
        "work/sub/.claude/skills/nested",
        "home/config/skills",
        "home/opencode/skill",
        "home/.claude/skills",
        "home/.agents/skills",
    ],
)
def test_a_skill_is_found_in_each_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / "work/sub").mkdir(parents=True)
    file = skill(tmp_path, folder)
    skills = settings_of(tmp_path, directory="sub").skills
    assert skills.by_name["pdf"].file == file
    assert skills.by_name["pdf"].description == "Reads PDFs"
    assert bool(skills.readable) is folder.startswith("home")


def test_configured_folders_are_looked_in_and_readable(tmp_path: Path) -> None:
    skill(tmp_path, "elsewhere/kit")
    skills = settings_of(tmp_path, skills={"paths": ["~/elsewhere/kit", "missing"]}).skills
    assert set(skills.by_name) == {"pdf"}
    assert skills.readable == (tmp_path / "elsewhere/kit",)


def test_of_two_skills_of_one_name_the_nearer_one_counts(tmp_path: Path) -> None:
    skill(tmp_path, "home/.claude/skills", description="far")
    skill(tmp_path, "work/.claude/skills", description="near")
    skill(tmp_path, "work/.codeloop/skills", description="nearest")
    assert settings_of(tmp_path).skills.by_name["pdf"].description == "nearest"


def test_an_untrusted_project_never_replaces_a_skill_of_the_person(tmp_path: Path) -> None:
    skill(tmp_path, "home/.claude/skills", description="mine")
    skill(tmp_path, "work/.codeloop/skills", description="theirs")
    skill(tmp_path, "work/.codeloop/skills", "other")
    settings = settings_of(tmp_path, trust=False)
    assert settings.skills.by_name["pdf"].description == "mine"
    assert "other" in settings.skills.by_name
    assert any("not trusted" in warning for warning in settings.loaded.warnings)


def test_links_of_a_project_are_not_followed_out_of_it_trusted_or_not(tmp_path: Path) -> None:
    secret = write(tmp_path, "secret/SKILL.md", "---\nname: leak\ndescription: d\n---\nkey")
    link = tmp_path / "work/.codeloop/skills/leak/SKILL.md"
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    for trust in (False, True):
        assert "leak" not in settings_of(tmp_path, trust=trust).skills.by_name


async def test_a_link_that_flips_after_the_start_is_not_followed_either(tmp_path: Path) -> None:
    file = skill(tmp_path, "work/.codeloop/skills")
    tool = make_skill_tool(settings_of(tmp_path, trust=False).skills)
    file.unlink()
    file.symlink_to(write(tmp_path, "secret.md", "key"))
    with pytest.raises(ToolFailure, match="leads out"):
        await tool.run(tool.params(name="pdf"), make_context(tmp_path))


@pytest.mark.parametrize(
    ("head", "name", "description"),
    [
        ("name: x\ndescription: d\nargument-hint: [a] [b]", "x", "d"),
        ("name: x\ndescription: `pdf` files", "x", "`pdf` files"),
        ("name: x\ndescription: @see this", "x", "@see this"),
        ("name: x\ndescription: ! do: it", "x", "! do: it"),
        ("name: x\ndescription: - do: it", "x", "- do: it"),
        ("name: x\ndescription: *all* of: it\n  and more", "x", "*all* of: it and more"),
        ("name: under_score\ndescription: d", "a-folder", "d"),
        ("name: Title Case\ndescription: d", "a-folder", "d"),
        (f"name: {'a' * 65}\ndescription: d", "a-folder", "d"),
        ("description: d", "a-folder", "d"),
        ("name: x", "x", "The first line."),
    ],
)
@pytest.mark.parametrize(
    "home", [".claude/skills", ".agents/skills", ".codeloop/skill", ".opencode/skill"]
)
def test_heads_are_read_as_other_programs_read_them(
    tmp_path: Path, home: str, head: str, name: str, description: str
) -> None:
    write(tmp_path, f"work/{home}/A Folder/SKILL.md", f"---\n{head}\n---\n\n# The first line.\n")
    settings = settings_of(tmp_path)
    assert settings.loaded.warnings == ()
    assert {skill.name: skill.description for skill in settings.skills.by_name.values()} == {
        name: description
    }


def test_linked_folders_of_skills_are_followed_and_loops_end(tmp_path: Path) -> None:
    text = "---\nname: {}\ndescription: d\n---\n"
    for name in ("home/.claude/skills/one", "work/.agents/skills/two"):
        write(tmp_path, f"elsewhere/{Path(name).name}/SKILL.md", text.format(Path(name).name))
        write(tmp_path, f"work/shared/{Path(name).name}/SKILL.md", text.format(Path(name).name))
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "home/.claude/skills/one").symlink_to(tmp_path / "elsewhere/one")
    (tmp_path / "work/.agents/skills/two").symlink_to("../../shared/two")
    (tmp_path / "work/shared/two/loop").symlink_to("..")
    settings = settings_of(tmp_path)
    assert settings.loaded.warnings == ()
    assert {"one", "two"} <= set(settings.skills.by_name)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "SKILL.md:1: a skill has a text"),
        ("---\nname: x\n---\n", "SKILL.md:1: a skill has a text"),
        ("---\nname: x\ndescription: [a]\n---\n", "SKILL.md:1: a skill has a text"),
        ("---\nname: x\n", "no closing line"),
        ("---\nname: [\n---\n", "SKILL.md:"),
    ],
)
def test_a_bad_skill_is_a_warning_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    write(tmp_path, "work/.claude/skills/x/SKILL.md", text)
    settings = settings_of(tmp_path)
    (warning,) = settings.loaded.warnings
    assert told in warning
    assert not settings.skills.by_name


async def test_loading_gives_the_text_the_folder_and_the_files(tmp_path: Path) -> None:
    file = skill(tmp_path, "work/.claude/skills", body="Use pdftotext.\n\n---\n\nEnd.")
    write(tmp_path, "work/.claude/skills/pdf/scripts/run.py", "print()")
    tool = make_skill_tool(settings_of(tmp_path).skills)
    ctx = make_context(tmp_path)
    result = await tool.run(tool.params(name="pdf"), ctx)
    assert result.title == "Loaded skill: pdf"
    assert result.metadata == {"name": "pdf", "dir": str(file.parent)}
    assert result.output == (
        '<skill_content name="pdf">\nUse pdftotext.\n\n---\n\nEnd.\n\n'
        "Relative paths in this skill start in .claude/skills/pdf.\n"
        "<skill_files>\nscripts/run.py\n</skill_files>\n</skill_content>"
    )
    assert [(need.permission, need.patterns) for need in ctx.asked] == [("skill", ("pdf",))]


async def test_only_so_many_files_are_listed(tmp_path: Path) -> None:
    skill(tmp_path, "work/.claude/skills")
    for number in range(SKILL_FILES.value + 3):
        write(tmp_path, f"work/.claude/skills/pdf/{number:03}.txt", "")
    tool = make_skill_tool(settings_of(tmp_path).skills)
    output = (await tool.run(tool.params(name="pdf"), make_context(tmp_path))).output
    assert output.count(".txt\n") == SKILL_FILES.value
    assert "(3 more files are not listed)" in output


async def test_what_can_not_be_loaded_is_told(tmp_path: Path) -> None:
    file = skill(tmp_path, "work/.claude/skills")
    tool = make_skill_tool(settings_of(tmp_path).skills)
    with pytest.raises(ToolFailure, match="There is no skill 'nope'"):
        await tool.run(tool.params(name="nope"), make_context(tmp_path, deny=["skill:*"]))
    with pytest.raises(Denied):
        await tool.run(tool.params(name="pdf"), make_context(tmp_path, deny=["skill:p*"]))
    file.unlink()
    with pytest.raises(ToolFailure, match="no longer exists"):
        await tool.run(tool.params(name="pdf"), make_context(tmp_path))


def test_the_list_leaves_out_what_is_denied_and_stays_within_bounds(tmp_path: Path) -> None:
    for number in range(40):
        skill(tmp_path, "work/.claude/skills", f"s{number:02}", "\u200bWords " * 60)
    skills = settings_of(tmp_path).skills
    rules = (
        PermissionRule(permission="skill", pattern="s0*", action="deny"),
        PermissionRule(permission="skill", pattern="s05", action="ask"),
    )
    allowed = filter_skills(skills, rules)
    assert [each.name for each in allowed[:2]] == ["s05", "s10"]
    text = format_skill_list(allowed)
    assert len(text.encode()) <= SKILL_LISTING.value
    assert "\u200b" not in text
    assert [line for line in text.splitlines() if line.startswith("- s39")]
    assert make_skill_tool(skills).build_description is not None
    everything = make_skill_tool(skills).build_description
    assert everything is not None
    assert everything((PermissionRule(permission="skill", pattern="*", action="deny"),)) is None


async def test_the_tool_is_offered_only_when_there_is_a_skill(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="ok")]) as it:
        await it.prompt()
        assert "skill" not in {tool.name for tool in it.model.requests[0].tools}


async def test_the_model_sees_loads_and_reads_a_global_skill_without_a_question(
    tmp_path: Path,
) -> None:
    file = skill(tmp_path, "home/.claude/skills", "notes", body="See more.md.")
    skill(tmp_path, "home/.claude/skills", "secret")
    more = write(tmp_path, "home/.claude/skills/notes/more.md", "The rest.")
    script = [
        make_answer(
            ScriptedCall("skill", {"name": "notes"}, "c1"), make_call("read", filePath=str(more))
        ),
        ScriptedAnswer(text="ok"),
    ]
    async with open_scripted_project(
        tmp_path, script, permission={"skill": {"sec*": "deny"}}
    ) as it:
        await it.prompt()
        first, second = it.model.requests
        (offered,) = [tool for tool in first.tools if tool.name == "skill"]
        assert offered.description.endswith("\n- notes: Reads PDFs")
        assert first.tools == second.tools
        loaded, read = it.results()
        assert "See more.md." in loaded
        assert str(file.parent) in loaded
        assert "The rest." in read
        assert [each.name for each in await it.client.call(SKILL_LIST, NoArguments())] == [
            "notes",
            "secret",
        ]
