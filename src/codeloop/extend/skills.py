"""Skills: finds the folders with a SKILL.md, and defines the tool by which the model loads one."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop.config.files import describe_os_error, read_start, read_text
from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.extend.homes import Home, find_files, links_outside
from codeloop.kit.jsonc import is_list
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.permission.rule_patterns import find_last_match
from codeloop.schema.api.agents import Skill
from codeloop.schema.config import Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.installation import check_package_file
from codeloop.schema.limits import (
    MAX_SKILLS,
    PAGE_BYTES,
    SKILL_DESCRIPTION,
    SKILL_FILES,
    SKILL_HEAD,
    SKILL_LISTING,
)
from codeloop.schema.permission import Need, Ruleset
from codeloop.tool.tool import CONCURRENT_TRAITS, Tool, ToolContext, ToolFailure, ToolResult, tool

_NAME = r"[a-z0-9]+(-[a-z0-9]+)*"
_MAX_NAME_CHARS = 64
_DESCRIPTION_FILE = Path(__file__).with_name("skill.md")


class SkillFile(Struct, frozen=True):
    """A skill with its parsed head. `bound`: the folder that its resolved file must be in;
    None: any.
    """

    name: str
    description: str
    file: Path
    is_project: bool
    bound: Path | None = None


class Skills(Struct, frozen=True):
    """The skills of a project, sorted by name. `readable`: resolved folders outside
    the project that hold skills.

    `warnings`: a line for each skill that can't be used.
    """

    by_name: dict[str, SkillFile] = struct_field(default_factory=dict[str, SkillFile])
    readable: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


def find_skills(
    project_root: ProjectRoot,
    config: Config,
    paths: Paths,
    homes: tuple[Home, ...],
    *,
    trusted: bool,
) -> Skills:
    """Read the heads of all skills; of two with the same name the later one wins. Never fails.

    An untrusted project's skills may be read by the model, but never replace the user's own, and
    their links are not followed out of the work tree.
    """
    skill_files: dict[str, SkillFile] = {}
    readable: dict[Path, None] = {}
    warnings: list[str] = []
    for folder, is_project in _list_skill_folders(project_root, config, paths, homes):
        bound = project_root.root if is_project else None
        for file in find_files(folder, lambda name: name == "SKILL.md", follow_links=True):
            try:
                skill = _read_head(file, is_project=is_project, bound=bound)
            except CodeloopError as error:
                warnings.append(f"{error} Left out.")
                continue
            earlier_skill = skill_files.get(skill.name)
            # A repository could otherwise replace a skill that the user relies on with
            # instructions of its own.
            if (
                is_project
                and not trusted
                and earlier_skill is not None
                and not earlier_skill.is_project
            ):
                warnings.append(
                    f"{file}: you have a skill {skill.name} of your own; the project is not trusted."
                )
            elif earlier_skill is None and len(skill_files) >= MAX_SKILLS.value:
                warnings.append(f"{file}: more than {MAX_SKILLS.value} skills. Left out.")
            else:
                skill_files[skill.name] = skill
                if not is_project:
                    readable |= dict.fromkeys(
                        (Path(os.path.realpath(folder)), Path(os.path.realpath(file.parent)))
                    )
    return Skills(dict(sorted(skill_files.items())), _keep_outermost(readable), tuple(warnings))


def _list_skill_folders(
    project_root: ProjectRoot, config: Config, paths: Paths, homes: tuple[Home, ...]
) -> Iterator[tuple[Path, bool]]:
    """Yield the folders of skills, each with whether it belongs to the project;
    each real folder once.
    """
    seen: set[str] = set()
    configured_paths = config.skills.get("paths")
    for home in homes:
        for name in ("skill", "skills"):
            if name in home.names and _add_folder(home.path / name, seen):
                yield home.path / name, home.is_project
    for path in configured_paths if is_list(configured_paths) else ():
        if isinstance(path, str):
            folder = project_root.directory / paths.expand_home(path)
            if _add_folder(folder, seen):
                yield folder, False


def _add_folder(folder: Path, seen: set[str]) -> bool:
    """Add the real path of a folder to `seen`; return whether it is new."""
    real_path = os.path.realpath(folder)
    if real_path in seen:
        return False
    seen.add(real_path)
    return True


def _keep_outermost(folders: dict[Path, None]) -> tuple[Path, ...]:
    """Return the folders that are not below another one of them."""
    return tuple(each for each in folders if not any(parent in folders for parent in each.parents))


def _read_head(file: Path, *, is_project: bool, bound: Path | None) -> SkillFile:
    """Read a skill's head. Raises CodeloopError with file and line."""
    if bound is not None and links_outside(file, bound):
        raise CodeloopError(f"{file} leads out of the project.")
    # Imported late: a project without skills needs no parser of their heads.
    from codeloop.kit.text.frontmatter import FrontmatterError, split_frontmatter

    try:
        # Only the head is needed for the listing; the body is read when the skill is loaded.
        text = read_start(file, SKILL_HEAD.value).decode("utf-8", "replace")
        page = split_frontmatter(text)
        head = page.head
    except OSError as error:
        raise CodeloopError(f"{file} can't be read: {describe_os_error(error)}.") from error
    except FrontmatterError as error:
        raise CodeloopError(f"{file}:{error.line}: {error}.") from error
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not _is_name(name):
        # As other programs do.
        name = _make_name(file.parent.name, name)
    if not isinstance(description, str) or not description.strip():
        lines = (line.strip("# \t") for line in page.body.splitlines())
        description = next(filter(None, lines), "")
    if not name or not description:
        raise CodeloopError(f"{file}:1: a skill has a text, in a folder that names it.")
    return SkillFile(name, description.strip(), file, is_project, bound)


def _is_name(name: str) -> bool:
    return re.fullmatch(_NAME, name) is not None and len(name) <= _MAX_NAME_CHARS


def _make_name(*texts: object) -> str:
    """Return the first of some texts that is a name,
    or can be made one: `Title Case` -> `title-case`; else "".
    """
    names = [
        re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        for text in texts
        if isinstance(text, str)
    ]
    return next(filter(_is_name, names), "")


def load_skill(skill_file: SkillFile) -> Skill:
    """Read a skill's text. Raises CodeloopError if it is gone, too large, not text,
    or a link out of the project.
    """
    if (
        skill_file.bound is not None
        # Checked again: the link may have been changed since the skill was found.
        and os.path.lexists(skill_file.file)
        and links_outside(skill_file.file, skill_file.bound)
    ):
        raise CodeloopError(f"{skill_file.file} leads out of the project.")
    text = read_text(skill_file.file, PAGE_BYTES.value)
    if text is None:
        raise CodeloopError(f"{skill_file.file} no longer exists.")
    from codeloop.kit.text.frontmatter import FrontmatterError, split_frontmatter

    try:
        body = split_frontmatter(text).body
    except FrontmatterError as error:
        raise CodeloopError(f"{skill_file.file}:{error.line}: {error}.") from error
    return Skill(
        name=skill_file.name,
        description=skill_file.description,
        location=str(skill_file.file),
        content=body.strip(),
    )


def format_skill(skill: Skill, format_path: Callable[[Path], str]) -> str:
    """Format a skill for the model: its text, its folder, and a bounded list of its files.

    `format_path` returns the form of a path that the model knows.
    """
    folder = Path(skill.location).parent
    files = [
        file
        for file in find_files(folder, lambda name: name != "SKILL.md")
        if ".git" not in file.parts
    ]
    files_listed = [
        escape_controls(str(file.relative_to(folder))) for file in files[: SKILL_FILES.value]
    ]
    if len(files) > len(files_listed):
        files_listed.append(f"({len(files) - len(files_listed)} more files are not listed)")
    lines = [
        f'<skill_content name="{skill.name}">',
        skill.content,
        "",
        f"Relative paths in this skill start in {format_path(folder)}.",
        *(["<skill_files>", *files_listed, "</skill_files>"] if files_listed else []),
        "</skill_content>",
    ]
    return "\n".join(lines)


def filter_skills(skills: Skills, *rulesets: Ruleset) -> list[SkillFile]:
    """Return the skills that the rules do not deny."""
    rules = [rule for ruleset in rulesets for rule in ruleset]
    verdicts = (
        (skill, find_last_match("skill", skill.name, rules)) for skill in skills.by_name.values()
    )
    return [skill for skill, rule in verdicts if rule is None or rule.action != "deny"]


def format_skill_list(skills: list[SkillFile]) -> str:
    """Format the list of skills for the model, one line each.

    When the list gets long, the remaining skills are shown by name only, and at last as a count.
    """
    bytes_left = SKILL_LISTING.value
    lines: list[str] = []
    for index, skill in enumerate(skills):
        whole = f"- {skill.name}: {one_line(skill.description, SKILL_DESCRIPTION.value)}"
        line = next(
            (each for each in (whole, f"- {skill.name}") if len(each.encode()) < bytes_left), None
        )
        if line is None:
            lines.append(f"({len(skills) - index} more)")
            break
        bytes_left -= len(line.encode()) + 1
        lines.append(line)
    return "\n".join(lines)


class SkillParams(msgspec.Struct, frozen=True):
    """Which skill to load."""

    name: str


def make_skill_tool(skills: Skills) -> Tool:
    """Return the tool that loads one of these skills. Its description depends on the rules."""
    text = check_package_file(_DESCRIPTION_FILE).read_text(encoding="utf-8").strip()

    def describe(*rulesets: Ruleset) -> str | None:
        usable = filter_skills(skills, *rulesets)
        return f"{text}\n{format_skill_list(usable)}" if usable else None

    @tool(
        "skill",
        params=SkillParams,
        traits=CONCURRENT_TRAITS,
        description=text,
        build_description=describe,
    )
    async def skill(params: SkillParams, ctx: ToolContext) -> ToolResult:
        """Return a skill's text, where it lies, and the names of its files."""
        # A name in another case still finds the skill, if only one skill has it.
        folded = params.name.strip().lower()
        names = [name for name in skills.by_name if name.lower() == folded]
        name = names[0] if len(names) == 1 else params.name.strip()
        skill_file = skills.by_name.get(name)
        if skill_file is None:
            raise ToolFailure(
                f"There is no skill {params.name!r}. Available: {', '.join(skills.by_name)}."
            )
        await ctx.ask(
            Need(permission="skill", patterns=(name,), always=(name,), metadata={"name": name})
        )
        try:
            loaded = load_skill(skill_file)
        except CodeloopError as error:
            raise ToolFailure(f"The skill {skill_file.name} can't be loaded: {error}") from error
        output = format_skill(loaded, ctx.workspace.format_for_model)
        metadata = {"name": skill_file.name, "dir": str(Path(loaded.location).parent)}
        return ToolResult(f"Loaded skill: {skill_file.name}", output, metadata)

    return skill
