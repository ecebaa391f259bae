"""Reads agents and commands from Markdown pages as layers of the configuration.

As layers they are merged, checked and traced to their file and line like any other configuration.
"""

import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from codeloop.config.files import read_text
from codeloop.config.forms.normalise import normalise_layer
from codeloop.config.project_root import ProjectRoot
from codeloop.config.sources import ExtraLayers, Layer, format_keys
from codeloop.extend.homes import Home, find_page_files, is_valid_name
from codeloop.kit.jsonc import Document, KeyPath, Position, is_list, is_object
from codeloop.schema.config import Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import EXTEND_FILES, EXTEND_VALUES, PAGE_BYTES
from codeloop.schema.wire import JSON, replace

_SECTION_FOLDERS = (
    ("mode", ("mode", "modes")),
    ("agent", ("agent", "agents")),
    ("command", ("command", "commands")),
)
_CLAUDE_SECTION_FOLDERS = (("agent", ("agents",)), ("command", ("commands",)))
# A warning names this many files, and counts the rest.
_MAX_NAMED_FILES = 3
# Keys of an agent's head by which a project that is not trusted may restrict it.
_RESTRICTING_KEYS = frozenset((
    *("permission", "permissions", "tools", "only"),
    *("disable", "disabled", "steps", "maxSteps"),
))  # fmt: skip
# Pages written for other programs have these keys too; they are ignored without a warning.
_IGNORED_KEYS = {
    "agent": frozenset(("name",)),
    "command": frozenset(("name", "argument-hint", "allowed-tools")),
}


class PageLayer(Layer, frozen=True):
    """The layer of a page. `document`: its values under `agent.<name>` or `command.<name>`;
    `text`: the page itself.
    """

    text: str = ""

    def find_position(self, keys: KeyPath, *, of_key: bool = False) -> Position:
        """Return the line of a key in the head, or the nearest found;
        for the prompt, the body's line.
        """
        del of_key
        index = 0
        for key in keys[2:]:
            if key in {"prompt", "template"}:
                # The prompt begins behind the line that ends the head.
                index = max(self.text.find("\n---", 3) + 1, 0)
                break
            match = re.compile(
                rf"""^[ \t]*["']?{re.escape(str(key))}["']?[ \t]*:""", re.MULTILINE
            ).search(self.text, index)
            if match is None:
                break
            index = match.start()
        return Position(self.text.count("\n", 0, index) + 1, 1)


def find_pages(project_root: ProjectRoot, homes: Iterable[Home], *, trusted: bool) -> ExtraLayers:
    """Read the agents and commands of all homes. Unless `trusted`,
    the project's pages are listed as ignored, and only restrict.

    A page that can't be used becomes a warning with its file and line,
    those of Claude Code one for all; nothing is raised. An agent is switched off then: what its
    page forbids is not known.
    """
    layers: list[Layer] = []
    ignored: list[str] = []
    warnings: list[str] = []
    unusable: list[str] = []
    for home in homes:
        if home.is_foreign and not home.is_claude:
            continue
        for section, folders in _CLAUDE_SECTION_FOLDERS if home.is_claude else _SECTION_FOLDERS:
            for name, file in find_page_files(home, folders):
                is_restricted = home.is_project and not trusted
                page_name = str(file.relative_to(project_root.root)) if is_restricted else ""
                if is_restricted and section == "command":
                    ignored.append(page_name)
                    continue
                if len(layers) >= EXTEND_FILES.value:
                    warnings.append(
                        f"{file}: more than {EXTEND_FILES.value} agents and commands, not read."
                    )
                    return ExtraLayers(tuple(layers), tuple(ignored), tuple(warnings))
                if home.is_claude:
                    read = _read_claude_page(section, name, file, unusable, home)
                else:
                    try:
                        read = [_read_page(section, name, file, is_project=home.is_project)]
                    except CodeloopError as error:
                        read = _switch_off(section, name, file, home)
                        outcome = describe_unreadable(name) if read else "Left out."
                        warnings.append(f"{error} {outcome}")
                        # It counts: the agent is off.
                        page_name = ""
                if page_name:
                    ignored.append(page_name)
                layers += map(_keep_restrictions, read) if is_restricted else read
    if unusable:
        others = (
            f" and {len(unusable) - _MAX_NAMED_FILES} more"
            if len(unusable) > _MAX_NAMED_FILES
            else ""
        )
        warnings.append(
            f"Agents and commands of Claude Code that are left out: {'; '.join(unusable[:_MAX_NAMED_FILES])}{others}."
        )
    return ExtraLayers(tuple(layers), tuple(map(_format_path, ignored)), tuple(warnings))


def describe_unreadable(agent: str) -> str:
    """Return the sentence about an agent whose page can't be used."""
    return f"The agent {agent} is switched off, since its page can't be read."


def _switch_off(section: str, name: str, file: Path, home: Home) -> list[PageLayer]:
    """Return the layer that switches off the agent of a page that can't be used."""
    if section == "command" or not is_valid_name(name):
        return []
    document = Document("", {section: {name: {"disable": True}}})
    return [_make_layer(file, document, "", is_project=home.is_project)]


def _keep_restrictions(layer: PageLayer) -> PageLayer:
    """Return the layer of an agent's page with only what may restrict the agent."""
    ((section, agents),) = layer.raw.items()
    ((name, values),) = agents.items()
    kept: JSON = {key: value for key, value in values.items() if key in _RESTRICTING_KEYS}
    only = kept.pop("only", None)
    if is_list(only):
        # Imported late: only the form of Claude Code has such a list.
        from codeloop.extend.agents import TOOL_INDEPENDENT_PERMISSIONS

        rules = kept.get("permission", {})
        names = dict.fromkeys((*only, *TOOL_INDEPENDENT_PERMISSIONS), "allow")
        kept["permission"] = {"*": "deny", **names, **(rules if is_object(rules) else {"*": rules})}
    rules = normalise_layer(layer, {section: {name: kept}}).values.get("agent", {}).get(name, {})
    if all(rule["action"] == "allow" for rule in rules.get("permission", ())):
        kept = {
            key: value
            for key, value in kept.items()
            if key in {"disable", "disabled", "steps", "maxSteps"}
        }
    return replace(layer, document=Document("", {section: {name: kept}} if kept else {}))


def _read_claude_page(
    section: str, name: str, file: Path, unusable: list[str], home: Home
) -> list[PageLayer]:
    """Read a page of a home in Claude Code's form; [] if it is not a page, or can't be used,
    which is added to `unusable`.
    """
    # A README among the agents documents the folder; it is not an agent.
    if Path(name).name.upper() == "README":
        return []
    # Imported late: most users have no pages of Claude Code.
    from codeloop.extend.pages.claude_code import read_agent, read_command
    from codeloop.kit.text.frontmatter import FrontmatterError

    try:
        text = read_text(file, PAGE_BYTES.value) or ""
        page = (
            read_command(name, text) if section == "command" else read_agent(Path(name).name, text)
        )
        is_prefixed = section == "command" and home.prefix
        page_name = f"{home.prefix}:{page.name}" if is_prefixed else page.name
        if not is_valid_name(page_name):
            raise FrontmatterError(f"{page_name!a} is not a valid name", 1)
        values = convert_yaml(page.values)
    except (CodeloopError, FrontmatterError, ValueError) as error:
        unusable.append(f"{ascii(str(file))[1:-1]} ({str(error).rstrip('.')})")
        return []
    document = Document("", {section: {page_name: values}})
    return [_make_layer(file, document, text, is_project=home.is_project)]


def _make_layer(file: Path, document: Document, text: str, *, is_project: bool) -> PageLayer:
    return PageLayer(
        name="project" if is_project else "global",
        source=str(file),
        base=file.parent,
        document=document,
        is_project=is_project,
        text=text,
    )


def _format_path(path: str) -> str:
    return path if path.isprintable() else ascii(path)


def _read_page(section: str, name: str, file: Path, *, is_project: bool) -> PageLayer:
    """Read a page of ours. Raises CodeloopError with file and line if it can't be used."""
    if not is_valid_name(name):
        raise CodeloopError(
            f"{str(file)!a}: {name!a} is not a valid name; use letters, digits, `-`, `_`, `.` and `/`."
        )
    text = read_text(file, PAGE_BYTES.value)
    if text is None:
        raise CodeloopError(f"{file}: the file it links to does not exist.")
    # Imported late: a project without pages needs no parser of their heads.
    from codeloop.kit.text.frontmatter import FrontmatterError, split_frontmatter

    try:
        page = split_frontmatter(text)
        head = convert_yaml(page.head)
    except FrontmatterError as error:
        raise CodeloopError(f"{file}:{error.line}: {error}.") from error
    except ValueError as error:
        raise CodeloopError(f"{file}:1: {error}.") from error
    body = page.body.strip()
    kind = "command" if section == "command" else "agent"
    values: JSON = {key: value for key, value in head.items() if key not in _IGNORED_KEYS[kind]}
    if body or kind == "command":
        values["template" if kind == "command" else "prompt"] = body
    layer = _make_layer(file, Document("", {section: {name: values}}), text, is_project=is_project)
    _check_values(layer, section, name, values)
    return layer


def _check_values(layer: PageLayer, section: str, name: str, values: JSON) -> None:
    """Raise CodeloopError with file and line unless the page is a valid piece of configuration."""
    normalised = normalise_layer(layer, layer.raw)
    try:
        msgspec.convert(normalised.values, Config)
    except msgspec.ValidationError:
        # Imported late: most pages fit their types.
        from codeloop.config.type_errors import find_type_error

        keys, fault = find_type_error(normalised.values, Config)
        raise CodeloopError(
            f"{layer.format_location(normalised.find_source_keys(keys))}: {format_keys(keys[2:])}: {fault}."
        ) from None
    keys = (section, name)
    model = values.get("model")
    if isinstance(model, str) and not (model.partition("/")[0] and model.partition("/")[2]):
        location = layer.format_location((*keys, "model"))
        raise CodeloopError(f"{location}: model: expected provider/model, got {model!a}.")
    if values.get("template") == "":
        raise CodeloopError(
            f"{layer.format_location(keys)}: there is no text below the head; it is the command's prompt."
        )


def convert_yaml(value: Any, depth: int = 16) -> Any:
    """Convert parsed YAML to JSON values: dates as text, keys as text.

    Raises ValueError when it is deeper or larger than a head can sensibly be: an alias
    may expand to very much.
    """
    # YAML aliases can expand a few lines to millions of values ("billion laughs").
    remaining = EXTEND_VALUES.value

    def convert(value: Any, depth: int) -> Any:
        nonlocal remaining
        remaining -= 1
        if remaining < 0 or depth < 0:
            raise ValueError("the head has too many values, or is nested too deep")
        if is_object(value):
            return {str(key): convert(each, depth - 1) for key, each in value.items()}
        if is_list(value):
            return [convert(each, depth - 1) for each in value]
        if isinstance(value, date):
            return value.isoformat()
        if value is None or isinstance(value, str | int | float):
            return value
        raise ValueError(f"a value of the kind {type(value).__name__} can't be used here")

    return convert(value, depth)
