"""The homes of other agents, and what a user has there beside sessions:
what is taken over, what is read where it is, and what is left, with the reason.
"""

import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from codeloop.app.settings import ProjectSettings, find_settings
from codeloop.config.config_text import add_to_list, set_value
from codeloop.config.file_entries import edit_file
from codeloop.config.forms.claude_rules import RULE_LISTS
from codeloop.config.forms.server_entries import convert_entry
from codeloop.config.paths import Paths
from codeloop.config.sources import parse_layer
from codeloop.kit.jsonc import JsoncError, is_list, is_object, parse_jsonc
from codeloop.kit.small_files import create_private_folder
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

Program = Literal["opencode", "claude", "codex", "pi", "gemini"]
PROGRAMS: tuple[Program, ...] = ("opencode", "claude", "codex", "pi", "gemini")
NAMES: dict[Program, str] = {
    "opencode": "OpenCode",
    "claude": "Claude Code",
    "codex": "Codex",
    "pi": "pi",
    "gemini": "Gemini CLI",
}

UNREADABLE = (
    ArithmeticError,
    AttributeError,
    CodeloopError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading a file may raise whose values are of other types than its program writes."""


class Item(Struct):
    """Something in a home. `apply`: takes it over; None: it is not taken, and `note` says why,
    or it needs not be, since it is read where it is.
    """

    kind: str
    name: str
    note: str = ""
    apply: Callable[[], None] | None = None


class ForeignKey(Struct):
    """An API key for a provider, in a home's file of keys."""

    provider: str
    key: str


def find_home(program: Program, paths: Paths) -> Path:
    """Return the home of a program, whether it exists or not; of OpenCode its data folder."""
    match program:
        case "opencode":
            return paths.data.parent / "opencode"
        case "claude":
            return paths.claude_home
        case "codex":
            return paths.home / ".codex"
        case "pi":
            return paths.home / ".pi" / "agent"
        case "gemini":
            return paths.home / ".gemini"


def list_homes(paths: Paths) -> dict[Program, str]:
    """Return the programs that have a home here, with the names that people know."""
    return {program: NAMES[program] for program in PROGRAMS if find_home(program, paths).is_dir()}


class HomeReader:
    """Finds what can be taken over from a home, an absolute path.
    `file`: the configuration to write to. Of the project's own files it says what to write to
    the project's configuration.
    """

    def __init__(
        self,
        program: Program,
        home: Path,
        settings: ProjectSettings,
        file: Path,
    ) -> None:
        self.program: Program = program
        self.home = home
        self.problems: list[str] = []
        self._settings = settings
        self._paths = settings.paths
        self._loaded = settings.loaded
        self._file = file
        self._root = settings.project_root.root

    def list_items(self) -> list[Item]:
        """Return the settings beside sessions and keys."""
        match self.program:
            case "opencode":
                return list(self._list_opencode())
            case "claude":
                return list(self._list_claude())
            case "codex":
                return list(self._list_codex())
            case "pi":
                return list(self._list_pi())
            case "gemini":
                return list(self._list_gemini())

    def list_keys(self) -> tuple[list[ForeignKey], list[Item]]:
        """Return the API keys in a home, and its other sign-ins, which are left."""
        if self.program == "claude":
            left = (self.home / ".credentials.json").is_file()
            return [], [_leave_sign_in(self.program)] if left else []
        data = self._read(self.home / "auth.json")
        keys: list[ForeignKey] = []
        others: list[Item] = []
        if self.program == "codex":
            key = data.get("OPENAI_API_KEY")
            if isinstance(key, str) and key:
                keys.append(ForeignKey("openai", key))
            data["ChatGPT"] = data.pop("tokens", None)
        for provider, entry in data.items():
            match entry:
                case {"type": "api" | "api_key", "key": str(key)} if key:
                    keys.append(ForeignKey(provider, key))
                case {"type": "oauth"} | {"access_token": str()}:
                    others.append(_leave_sign_in(provider))
                case _:
                    pass
        if self.program == "gemini" and (self.home / "oauth_creds.json").is_file():
            others.append(_leave_sign_in("google"))
        return keys, others

    def _list_opencode(self) -> Iterator[Item]:
        folder = self._paths.opencode_config
        for name in ("opencode.json", "opencode.jsonc", "AGENTS.md"):
            if (folder / name).is_file():
                yield _keep("settings", str(folder / name))
        for name in ("agent", "agents", "command", "commands", "skill", "skills", "plugin", "tool"):
            if (folder / name).is_dir():
                yield _keep(name, str(folder / name))

    def _list_claude(self) -> Iterator[Item]:
        settings = self._read(self.home / "settings.json")
        permissions, hooks = settings.get("permissions"), settings.get("hooks")
        if is_object(permissions) and permissions:
            yield from self._add_permissions(permissions)
        if is_object(hooks) and hooks:
            yield self._set_value("hooks", str(self.home / "settings.json"), ("hooks",))
        yield from self._list_servers(self._read(self.home.parent / ".claude.json"))
        for name in ("agents", "commands", "skills", "rules", "CLAUDE.md"):
            if (self.home / name).exists():
                yield _keep(name, str(self.home / name))
        for name in (".claude/settings.json", ".claude/settings.local.json"):
            own = self._read(self._root / name) if self._root != self.home.parent else {}
            if own.get("hooks"):
                yield _advise_project(f"hooks of {name}", f'"hooks": "{name}"')
            if own.get("permissions"):
                yield _advise_project(f"permissions of {name}", 'its "permissions"')
        for name in ("statusLine", "outputStyle", "enabledPlugins", "env", "model"):
            if name in settings:
                yield Item("settings", name, "not taken: codeloop has no such key of this form")

    def _list_codex(self) -> Iterator[Item]:
        settings = self._read_toml(self.home / "config.toml")
        yield from self._list_servers({"mcpServers": settings.get("mcp_servers")})
        yield from self._copy_pages(self.home / "prompts", "command", ".md", _keep_text)
        yield from self._copy_skills()
        yield from self._add_instructions("AGENTS.md")
        reasons = {
            "approval_policy": "codeloop asks by rules and proves what is harmless",
            "sandbox_mode": "codeloop's sandbox is on, and `sandbox` in codeloop.json changes it",
            "model_providers": "add it under `provider` in codeloop.json",
            "notify": "`notifications` in codeloop.json is for that",
            "profiles": "codeloop has profiles of permissions alone",
            "hooks": "add it to `hooks` in codeloop.json",
        }
        for name, reason in reasons.items():
            if name in settings:
                yield Item("settings", name, f"not taken: {reason}")

    def _list_pi(self) -> Iterator[Item]:
        yield from self._copy_pages(self.home / "prompts", "command", ".md", _keep_text)
        yield from self._copy_skills()
        yield from self._add_instructions("AGENTS.md")
        for name in ("extensions", "themes", "models.json", "SYSTEM.md"):
            if (self.home / name).exists():
                yield Item("settings", name, "not taken: it is of pi's own form")

    def _list_gemini(self) -> Iterator[Item]:
        settings = self._read(self.home / "settings.json")
        yield from self._list_servers(settings)
        yield from self._copy_pages(self.home / "commands", "command", ".toml", _convert_command)
        yield from self._copy_skills()
        yield from self._add_instructions("GEMINI.md")
        if (self._root / "GEMINI.md").is_file():
            yield _advise_project("GEMINI.md", '"instructions": ["GEMINI.md"]')
        for name in ("tools", "hooks", "extensions", "policies"):
            if name in settings or (self.home / name).exists():
                yield Item("settings", name, "not taken: it is of Gemini CLI's own form")

    def _list_servers(self, settings: JSON) -> Iterator[Item]:
        servers = settings.get("mcpServers")
        for name, entry in servers.items() if is_object(servers) else ():
            try:
                server = convert_entry(name, self.home, entry if is_object(entry) else {})
            except UNREADABLE as error:
                yield Item("MCP server", name, f"not taken: it can't be read: {error}")
                continue
            if server.problem:
                yield Item("MCP server", name, f"not taken: {server.problem}")
            elif name in self._loaded.config.mcp:
                yield Item("MCP server", name, "not taken: there is one of that name already")
            else:
                yield Item("MCP server", name, apply=self._make_server_writer(name, server.entry))

    def _make_server_writer(self, name: str, entry: JSON) -> Callable[[], None]:
        return lambda: self._edit("mcp", lambda text: set_value(text, ("mcp", name), entry))

    def _add_permissions(self, permissions: JSON) -> Iterator[Item]:
        lists = {
            name: permissions[name] for name in RULE_LISTS if is_list(permissions.get(name, None))
        }
        if any(lists.values()):
            taken = {name: rules for name, rules in lists.items() if rules}
            yield self._set_value("permissions", taken, ("permission", "permissions", "tools"))
        for name in permissions.keys() - lists.keys():
            yield Item("permissions", name, "not taken: codeloop has no such key of this form")

    def _set_value(self, key: str, value: Any, same: tuple[str, ...]) -> Item:
        """Return what sets a key. `same`: the keys of which the user may have one for the same;
        a value beside it could overrule it.
        """
        # By what is in force too: another file of the user's may have it. A project's comes after.
        origins = [origin for each in same for origin in self._loaded.list_origins((each,))]
        is_there = any(not origin.layer.is_project for origin in origins)
        if is_there or self._read(self._file).keys() & set(same):
            note = f"not taken: you have `{same[0]}` already; add what you want to {self._file}"
            return Item(key, key, note)
        return Item(
            key, key, apply=lambda: self._edit(key, lambda text: set_value(text, (key,), value))
        )

    def _edit(self, key: str, edit: Callable[[str], str]) -> None:
        """Change the configuration's text, unless no command would start with the new one.
        Raises CodeloopError.
        """

        def edit_and_check(text: str | None) -> str:
            new_text = edit(text or "")
            layer = parse_layer("global", str(self._file), self._file.parent, new_text)
            find_settings(self._settings.startup, (layer,))
            return new_text

        edit_file(self._file, key, edit_and_check)

    def _copy_pages(
        self, folder: Path, section: str, ending: str, convert: Callable[[Path], str]
    ) -> Iterator[Item]:
        for file in sorted(folder.rglob(f"*{ending}")) if folder.is_dir() else ():
            name = file.relative_to(folder).with_suffix("").as_posix()
            target = self._paths.config / section / f"{name}.md"
            yield self._make_copy(section, name, target, lambda file=file: convert(file))

    def _make_copy(self, kind: str, name: str, target: Path, read: Callable[[], str]) -> Item:
        if target.exists():
            return Item(kind, name, f"not taken: {target} is there already")

        def write() -> None:
            create_private_folder(target.parent)
            target.write_text(read(), encoding="utf-8")

        return Item(kind, name, apply=write)

    def _copy_skills(self) -> Iterator[Item]:
        for page in sorted((self.home / "skills").glob("[!.]*/SKILL.md")):
            folder, target = page.parent, self._paths.config / "skill" / page.parent.name
            if target.exists():
                yield Item("skill", folder.name, f"not taken: {target} is there already")
                continue

            def copy(folder: Path = folder, target: Path = target) -> None:
                create_private_folder(target.parent)
                shutil.copytree(folder, target, symlinks=True)

            yield Item("skill", folder.name, apply=copy)

    def _add_instructions(self, name: str) -> Iterator[Item]:
        file = self.home / name
        if not file.is_file() or not file.read_bytes().strip():
            return
        if str(file) in self._loaded.config.instructions:
            yield _keep("instructions", str(file))
            return

        def add() -> None:
            self._edit(
                "instructions",
                lambda text: add_to_list(
                    text, "instructions", str(file), lambda each: each == str(file)
                ),
            )

        yield Item("instructions", str(file), apply=add)

    def _read(self, file: Path) -> JSON:
        try:
            value = parse_jsonc(file.read_text(encoding="utf-8")).value
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, JsoncError) as error:
            self.problems.append(f"{file} is left out: {error}")
            return {}
        return value if is_object(value) else {}

    def _read_toml(self, file: Path) -> JSON:
        try:
            return tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            self.problems.append(f"{file} is left out: {error}")
            return {}


def _keep(kind: str, name: str) -> Item:
    return Item(kind, name, "read where it is")


def _advise_project(name: str, entry: str) -> Item:
    note = f"not taken: it is this project's; write {entry} to its codeloop.json"
    return Item("project", name, note)


def _leave_sign_in(name: str) -> Item:
    note = "not taken: such a sign-in is for that program alone; see `codeloop auth login`"
    return Item("sign-in", name, note)


def _keep_text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _convert_command(file: Path) -> str:
    """Return a command of Gemini CLI as a page of ours."""
    data: JSON = tomllib.loads(file.read_text(encoding="utf-8"))
    prompt = str(data.get("prompt", "")).replace("{{args}}", "$ARGUMENTS")
    prompt = re.sub(r"!\{([^{}`]*)\}", r"!`\1`", prompt)
    prompt = re.sub(r"@\{([^{}]*)\}", r"@\1", prompt)
    description = data.get("description")
    if not isinstance(description, str) or is_list(description):
        return f"{prompt}\n"
    one_line = description.replace("\n", " ").replace('"', "'")
    return f'---\ndescription: "{one_line}"\n---\n{prompt}\n'
