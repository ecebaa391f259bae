"""Checks whether what is configured can ever act: rules, hooks, skills, instructions.
Nothing is started.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

from codeloop.app.doctor.finding import Finding
from codeloop.app.doctor.name_checks import (
    examine_matcher,
    examine_names,
    examine_program,
    is_for_all,
    warn,
)
from codeloop.app.settings import ProjectSettings
from codeloop.app.toolbox import BUILTIN_TOOLS
from codeloop.config.instruction_rules import list_imports
from codeloop.config.instructions import read_instructions
from codeloop.config.sources import format_keys
from codeloop.extend.hooks.configured.matchers import matches_name
from codeloop.extend.hooks.configured.script_names import list_script_names
from codeloop.extend.skills import filter_skills
from codeloop.kit.jsonc import KeyPath
from codeloop.kit.paths import expand_user_path
from codeloop.kit.wildcard import covers, matches
from codeloop.permission.rule_patterns import find_meant_permission, list_wildcards
from codeloop.schema.config import HookConfig
from codeloop.schema.permission import PERMISSION_NAMES, PermissionRule, is_category_pattern

_GROUP = "effect"
_MAX_FILES = 20_000
_FILE_PERMISSIONS = frozenset({"read", "edit", "write", "list", "multiedit", "apply_patch", "view"})
_TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PermissionRequest"})
_SKIPPED_FOLDERS = frozenset({".git", "node_modules", ".venv", "__pycache__"})


def examine_effects(settings: ProjectSettings, commands: Collection[str] = ()) -> Iterator[Finding]:
    """Yield a finding for each rule, hook, skill, instruction and name that can't act;
    one for a kind where all can.

    `commands`: the slash commands of the program, which come before the user's.
    """
    yield from _end_with("rules", _examine_rules(settings), len(settings.config.permission))
    groups: dict[tuple[str, str, str], HookConfig] = {}
    for row in settings.config.hooks:
        # All hooks of a group have its matcher.
        groups.setdefault((row.event, row.matcher, row.place.rsplit(":", 2)[0]), row)
    hooks = [
        finding
        for row in groups.values()
        for finding in (*_examine_tool_matcher(row), *examine_matcher(row, settings))
    ]
    hooks += [
        finding for row in settings.config.hooks for finding in examine_program(row, settings)
    ]
    yield from _end_with("hooks", hooks, len(settings.config.hooks))
    yield from examine_names(settings, commands)
    yield from _end_with("skills", _examine_skills(settings), len(settings.skills.by_name))
    found = read_instructions(
        settings.project_root, settings.paths, settings.config, trusted=settings.trusted
    )
    warnings = [
        warn("instructions", warning, "Correct or remove it.") for warning in found.warnings
    ]
    read_files = {each.path for each in found.files}
    for folder in settings.project_root.folders:
        ours, theirs = folder / "AGENTS.md", folder / "CLAUDE.md"
        # Many projects have one that imports or links the other.
        if ours in read_files and theirs not in read_files and _has_own_text(theirs, ours):
            text = f"{theirs} is not read, since {ours} is there."
            warnings.append(warn("instructions", text, "Import it there: @CLAUDE.md"))
    yield from _end_with("instructions", warnings, len(found.files))


def _has_own_text(file: Path, other: Path) -> bool:
    """Return whether a file says something, is not the other one, and does not import that,
    directly or by files between: both would import each other.
    """
    seen: set[Path] = set()
    waiting = [file]
    while waiting:
        each = waiting.pop()
        try:
            text = each.read_text(errors="replace").strip() if each.is_file() else ""
            if each.samefile(other):
                return False
        except (OSError, ValueError):
            text = ""
        if each == file and not text:
            return False
        seen.add(each)
        imports = {
            Path(os.path.normpath(each.parent / expand_user_path(name)))
            for name in list_imports(text)
        }
        waiting += [path for path in imports - seen if path.suffix == ".md"]
    return True


def _end_with(name: str, findings: Sequence[Finding], count: int) -> Iterator[Finding]:
    """Yield findings; without any, one that says that all of this kind can act."""
    yield from findings
    if not findings:
        yield Finding(_GROUP, name, "ok", f"{count}, each can act" if count else "none")


def _examine_rules(settings: ProjectSettings) -> list[Finding]:
    """Return findings on the rules that can match nothing, or never decide."""
    config = settings.config
    sections: list[tuple[KeyPath, list[PermissionRule]]] = [
        (("permission",), config.permission),
        (("restrictions",), config.restrictions),
    ]
    sections += [
        (("agent", name, "permission"), agent.permission) for name, agent in config.agent.items()
    ]
    root, files = settings.project_root.root, None
    findings: list[Finding] = []
    for keys, rules in sections:
        for index, rule in enumerate(rules):
            origin = settings.loaded.provenance.get(format_keys((*keys, index)))
            is_project = origin is not None and origin.layer.is_project
            text = f"{rule.permission} {rule.pattern}: {rule.action}" + (
                f" ({origin})" if origin else ""
            )
            meant = find_meant_permission(rule.permission)
            is_other_name = rule.permission not in PERMISSION_NAMES and meant != rule.permission
            if is_other_name and rule.action != "allow":
                is_wide = "*" in meant and any(matches(each, meant) for each in PERMISSION_NAMES)
                fix = "It holds." if is_wide else f"It holds. Write {meant} to be plain."
                whose = ", of the tools of MCP servers alone" * is_wide
                findings.append(warn("rules", f"{text} is read as {meant}{whose}.", fix))
            if later := _find_later(rule, rules[index + 1 :]):
                rest = f"{later.permission} {later.pattern}: {later.action}"
                findings.append(
                    warn(
                        "rules",
                        f"{text} never decides: {rest}, after it, does.",
                        "Write it after that rule.",
                    )
                )
            elif rule.permission in _FILE_PERMISSIONS and not is_category_pattern(rule.pattern):
                path = Path(os.path.normpath(list_wildcards(rule)[0]))
                if path.is_absolute() and path.is_relative_to(root):
                    plain = path.relative_to(root)
                    fix = f"Write {plain}: files of the project are named from its top."
                    findings.append(warn("rules", f"{text} matches nothing.", fix))
                # A rule of the user's own file holds for all projects: in this one there
                # may be nothing for it.
                elif rule.action == "deny" and is_project and not path.is_absolute():
                    files = _list_names(root) if files is None else files
                    if not any(
                        matches(name, each) for each in list_wildcards(rule) for name in files
                    ):
                        findings.append(
                            warn(
                                "rules",
                                f"{text} matches no file that is there now.",
                                "Is it misspelt?",
                            )
                        )
    return findings


def _find_later(rule: PermissionRule, later: Sequence[PermissionRule]) -> PermissionRule | None:
    """Return a later rule that decides whatever this one would match; None: there is none."""
    if is_category_pattern(rule.pattern):
        return None
    for each in later:
        if not matches(rule.permission, each.permission) or is_category_pattern(each.pattern):
            continue
        if all(
            any(covers(text, wildcard) for wildcard in list_wildcards(each))
            for text in list_wildcards(rule)
        ):
            return each
    return None


def _list_names(root: Path) -> list[str]:
    """Return the paths of a project's files and folders,
    relative to its top: at most _MAX_FILES.
    """

    def walk() -> Iterator[str]:
        for top, folders, names in os.walk(root):
            folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
            yield from (os.path.relpath(f"{top}/{name}", root) for name in (*folders, *names))

    return list(islice(walk(), _MAX_FILES))


def _examine_tool_matcher(row: HookConfig) -> Iterator[Finding]:
    """Yield a finding on a hook whose matcher names no tool that there can be."""
    if row.event not in _TOOL_EVENTS or is_for_all(row.matcher):
        return
    names = [name for tool in BUILTIN_TOOLS for name in list_script_names(tool)]
    # Tools of servers, of extensions and skills are only known once these run.
    others = [
        each for each in row.matcher.replace(",", "|").split("|") if "__" in each or "_" in each
    ]
    if not others and not matches_name(row.matcher, [*names, *list_script_names("skill")]):
        text = f"{row.place}: {row.event} with the matcher {row.matcher!r} matches no tool."
        yield warn("hooks", text, "Names are Bash, Edit, Write, Read, ..., as in Edit|Write.")


def _examine_skills(settings: ProjectSettings) -> list[Finding]:
    """Return findings on the skills that rules hide from every model."""
    usable = {
        skill.name for skill in filter_skills(settings.skills, tuple(settings.config.permission))
    }
    hidden = [name for name in settings.skills.by_name if name not in usable]
    return [
        warn("skills", f"{name} is denied by a rule: no model is offered it.", "")
        for name in hidden
    ]
