"""Explains what the sandboxes of helper programs have refused, by what the programs say.
Imported when one has failed.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from codeloop.kit.child_process import Launch
from codeloop.workspace.process.program_sandboxes import ProgramSandbox, ProgramSandboxes
from codeloop.workspace.sandbox.helper_refusals import (
    HelperRefusal,
    Refused,
    describe_refusals,
    find_lost_writes,
    find_refusals,
    mentions_failure,
    note_refusals,
    read_refusals,
)
from codeloop.workspace.sandbox.named_paths import list_given_paths
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any
from codeloop.workspace.sandbox.strayed_writes import list_strayed


class Said(Struct, frozen=True):
    """What a program said, and to what.

    `places`: paths that its start named and that it may want to write;
    `given`: texts that it was given by a call, which may name paths; `finds_strayed`: what
    is in its private home was refused in the real one, and told unless it is on record.
    """

    text: str
    places: Sequence[Path] = ()
    given: Sequence[str] = ()
    finds_strayed: bool = False


def find_program_refusals(
    sandboxes: ProgramSandboxes, launch: Launch, confinement: ProgramSandbox, said: Said
) -> list[HelperRefusal]:
    """Return the refusals of the sandbox of a program, by what the program says and where it has
    written; those of a program with a sandbox of its own are kept. Reads the disk.
    """
    home = find_home(sandboxes)
    refused = Refused(
        policy=sandboxes.find_policy(launch, confinement),
        home=home,
        directory=Path(launch.directory),
        environment=launch.environment,
        offered=sandboxes.environment,
        places=said.places,
        given=list_given_paths(said.given, home),
    )
    refusals = find_refusals(said.text, refused) if mentions_failure(said.text) else []
    profile = confinement.profile
    if profile is not None:
        has_paths = refused.given or refused.places or said.finds_strayed
        private = sandboxes.find_private_folders(profile) if has_paths else None
        if private is not None and (folder := private.folders.get(Path(os.path.realpath(home)))):
            refusals += find_lost_writes(refused, folder, private.shown)
            if said.finds_strayed:
                known = {each.what for each in read_refusals(profile.data_folder)}
                refusals += [
                    HelperRefusal("write", str(home / each))
                    for each in list_strayed(folder, 0)
                    # A folder or an empty file may be where something is mounted.
                    if str(home / each) not in known
                    and not is_below_any(home / each, refused.policy.writable)
                    and _has_content(folder / each)
                ]
        note_refusals(profile.data_folder, refusals)
    return refusals


def _has_content(path: Path) -> bool:
    with suppress(OSError):
        status = path.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_size > 0
    return False


def explain_run(
    sandboxes: ProgramSandboxes,
    launch: Launch,
    confinement: ProgramSandbox | None,
    said: Said,
    command: str,
) -> str:
    """Return a line on what the sandbox of a program that was started refused it, by what the
    program says; "": nothing, or it has none. `command`: the one that allows more.
    """
    if confinement is None or not sandboxes.is_sandboxed(entry=True):
        return ""
    if not mentions_failure(said.text) and not said.finds_strayed:
        return ""
    # What the program says is worth more than why: this must not turn into an error.
    with suppress(OSError):
        found = find_program_refusals(sandboxes, launch, confinement, said)
        refusals = [each for each in found if each.kind != "env"]
        if refusals:
            return describe_refusals(refusals, command, find_home(sandboxes))
    return ""


def explain_program(sandboxes: ProgramSandboxes, kind: str, text: str, command: str) -> str:
    """Return such a line for a program with a sandbox of its own; "": nothing was refused.
    `kind`: the start of the name of its own folder.
    """
    for launch, confinement in sandboxes.list_own_launches(kind):
        if note := explain_run(sandboxes, launch, confinement, Said(text), command):
            return note
    return ""


def find_home(sandboxes: ProgramSandboxes) -> Path:
    """Return the user's home, as the sandboxes know it."""
    return Path(sandboxes.environment.get("HOME") or "/nonexistent")
