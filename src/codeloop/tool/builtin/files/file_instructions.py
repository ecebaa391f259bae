"""Finds the instruction files that apply to a file which the tool `read` shows."""

import os
from pathlib import Path

from codeloop.config.instruction_rules import find_rules_for, split_rule
from codeloop.config.instructions import INSTRUCTION_FILE_NAMES
from codeloop.schema.limits import READ_INSTRUCTIONS
from codeloop.tool.files.file_access import convert_errors, format_path
from codeloop.tool.files.shown_files import INSTRUCTIONS_TEMPLATE, find_shown_instructions
from codeloop.tool.tool import ToolContext
from codeloop.workspace.files.line_range import read_head
from codeloop.workspace.workspace import ResolvedPath


def find_instructions(ctx: ToolContext, target: ResolvedPath) -> dict[Path, str]:
    """Return the texts of the instruction files that apply to a file,
    unless the model has seen their present text.

    They are in the file's folder and in the folders above it in the project; outer folders come
    first. Those of the working directory and above it are in every request already, but for rules
    that are only for some files.
    """
    workspace = ctx.workspace
    root, directory = (
        Path(os.path.realpath(workspace.root)),
        Path(os.path.realpath(workspace.directory)),
    )
    in_request = {directory, *directory.parents}
    files: list[Path] = []
    for folder in reversed(target.real.parents):
        if folder.is_relative_to(root) and folder not in in_request:
            files += [
                folder / name for name in INSTRUCTION_FILE_NAMES if (folder / name).is_file()
            ][:1]
        if folder.is_relative_to(root):
            files += find_rules_for(target.real, folder)
    texts: dict[Path, str] = {}
    for file in files:
        real, name = Path(os.path.realpath(file)), format_path(workspace, file)
        if not workspace.contains(real) or real == target.real:
            continue
        with convert_errors(workspace, workspace.resolve(str(file))):
            text = split_rule(
                read_head(real, READ_INSTRUCTIONS.value).decode("utf-8", "replace")
            ).text.strip()
        earlier = find_shown_instructions(ctx.session.list_results_in_next_request(), name, real)
        if (
            not text
            or text == earlier
            or not workspace.read_log.record_first_load(ctx.message_id, real)
        ):
            continue
        note = "" if earlier is None else f"{name} has changed since it was given above:\n"
        texts[file] = note + INSTRUCTIONS_TEMPLATE.format(name=name, words=text)
    return texts
