"""The user's consent to start a server: to its definition,
and to the project files that it may load unsandboxed.
"""

import asyncio
import os
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import msgspec

from codeloop.extend.mcp.definition import LocalDefinition, ServerDefinition
from codeloop.extend.mcp.transport.transports import ServerDependencies
from codeloop.kit.paths import expand_user_path
from codeloop.kit.small_files import create_private_folder, lock, read_start, write_atomically
from codeloop.kit.text.diff import make_unified_diff
from codeloop.schema.limits import MCP_FILE, MCP_PROJECT_FILES, TRUST_LOCK
from codeloop.schema.permission import Need
from codeloop.schema.wire import DECODE_ERRORS, Wire

CHANGED_PERMISSION = "mcp_changed"
"""The permission for a server whose definition or tools differ from the approved ones."""
# So many definitions of one name are stored; the user is asked again about older ones.
_MAX_DEFINITIONS = 20


class ApprovedDefinition(Wire):
    """A definition that was approved: its hash, and its text for a later comparison.

    `code_fingerprint`: of the project files that it may load unsandboxed; "" for none.
    """

    digest: str
    text: str
    code_fingerprint: str = msgspec.field(default="", name="code")


class Approvals:
    """The file of approved definitions, by the server's name and the project whose
    configuration defines it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def find_change(self, definition: ServerDefinition) -> str:
        """Return the patch from the latest approved definition of this name;
        "" for an approved one, or a new name.
        """
        approved = self._read().get(_make_key(definition), [])
        # A new name needs no consent: the user has written the entry,
        # or trusts the project that has it.
        if not approved or any(each.digest == definition.digest for each in approved):
            return ""
        patch = make_unified_diff(definition.name, approved[-1].text, definition.text).patch
        # The digest covers the OAuth client, which the shown text leaves out: then
        # the two texts are equal.
        return patch or "(the secret of its sign-in)"

    def has_code(self, definition: ServerDefinition, fingerprint: str) -> bool:
        """Return whether a definition was approved with the project files of this fingerprint."""
        approved = self._read().get(_make_key(definition), [])
        return any(
            each.digest == definition.digest and each.code_fingerprint == fingerprint
            for each in approved
        )

    def approve(self, definition: ServerDefinition, fingerprint: str = "") -> None:
        """Store a definition as approved with the project files of this fingerprint.

        If writing fails, it is asked about again.
        """
        key = _make_key(definition)
        approved = ApprovedDefinition(
            digest=definition.digest, text=definition.text, code_fingerprint=fingerprint
        )
        if self._read().get(key, [])[-1:] == [approved]:
            return
        with suppress(OSError, TimeoutError):
            create_private_folder(self._file.parent)
            with lock(self._file.with_name(self._file.name + ".lock"), TRUST_LOCK.seconds):
                definitions_by_key = self._read()
                others = [
                    each
                    for each in definitions_by_key.get(key, [])
                    if each.digest != definition.digest
                ]
                definitions_by_key[key] = [*others, approved][-_MAX_DEFINITIONS:]
                write_atomically(self._file, msgspec.json.encode(definitions_by_key))

    def _read(self) -> dict[str, list[ApprovedDefinition]]:
        with suppress(OSError, *DECODE_ERRORS):
            return msgspec.json.decode(
                read_start(self._file, MCP_FILE.value), type=dict[str, list[ApprovedDefinition]]
            )
        return {}


def _make_key(definition: ServerDefinition) -> str:
    # Two projects may use one name for different servers.
    return f"{definition.scope}\n{definition.name}" if definition.scope else definition.name


_CODE_MESSAGE = (
    "It runs without a sandbox, as you, and may load any file of this project. "
    "You have not yet agreed to start it with the files as they are now.\n"
)


class StartConsent:
    """The consent to one server: `check` before it is started, `approve` when it has started."""

    def __init__(
        self, definition: ServerDefinition, dependencies: ServerDependencies, approvals: Approvals
    ) -> None:
        self.dependencies = dependencies
        self._definition = definition
        self._approvals = approvals
        self._code_fingerprint = ""
        self.has_asked_places = False
        """Whether the user was asked in this process where it may write."""

    async def check(self) -> str:
        """Compare the server with the approved state;
        return the differences as text for the user, or "".
        """
        fingerprint = self._code_fingerprint = await _fingerprint_code(
            self._definition, self.dependencies
        )
        has_other_code = bool(fingerprint) and not self._approvals.has_code(
            self._definition, fingerprint
        )
        return self._approvals.find_change(self._definition) + (
            _CODE_MESSAGE if has_other_code else ""
        )

    def approve(self) -> None:
        """Store the state of the last check as approved."""
        self._approvals.approve(self._definition, self._code_fingerprint)


async def _fingerprint_code(definition: ServerDefinition, dependencies: ServerDependencies) -> str:
    """Return a fingerprint of the project's files; "" where no project code is loaded.

    A program's imports are unknown before it runs, so all files count.
    """
    config = definition.config
    if not isinstance(config, LocalDefinition) or not (
        definition.scope or _leads_into_project(config, dependencies)
    ):
        return ""
    # Whether a sandbox can be had is known only after a try.
    if config.effective_sandbox is not False:
        await dependencies.program_sandboxes.probe()
    if dependencies.program_sandboxes.is_sandboxed(config.effective_sandbox):
        return ""
    return await asyncio.to_thread(_fingerprint_files, dependencies.project.root)


def _leads_into_project(config: LocalDefinition, dependencies: ServerDependencies) -> bool:
    """Return whether a server may run code of the project: it starts there,
    or its command names a file there.
    """
    project = dependencies.project
    roots = {str(project.root), os.path.realpath(project.root)}
    folder = (
        os.path.realpath(project.directory / expand_user_path(config.cwd)) if config.cwd else "/"
    )
    is_inside = any(f"{folder}/".startswith(f"{root}/") for root in roots)
    return is_inside or any(
        word.startswith(".") or any(root in word for root in roots) for word in config.command
    )


def _fingerprint_files(root: Path) -> str:
    """Return a hash of the state of all project files except git's;
    a unique one when there are too many.
    """
    file_states: list[str] = []
    for top, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in islice(names, MCP_PROJECT_FILES.value):
            try:
                status = os.lstat(f"{top}/{name}")
            except OSError:
                continue
            # Change times and inodes are included, because no program can set them back.
            file_states.append(
                f"{top}/{name}\0{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
            )
        if len(file_states) >= MCP_PROJECT_FILES.value:
            # Too many to compare: as they can't be known to be unchanged,
            # the user is asked each time.
            return os.urandom(16).hex()
    return blake2b(os.fsencode("\n".join(sorted(file_states))), digest_size=16).hexdigest()


def make_consent_need(server: str, patch: str) -> Need:
    """Return the permission to use a server as it is now.
    `patch`: the differences from what was approved.
    """
    return Need(
        permission=CHANGED_PERMISSION,
        patterns=(server,),
        metadata={"server": server, "diff": patch},
    )
