"""Limits of `codeloop acp`: what an editor is asked, and its terminals."""

from codeloop.kit.limit import Limit

EDITOR_FILE = Limit(
    "editor.file", 8 * 1024 * 1024, "bytes", "of a file that an editor may hold unsaved"
)
EDITOR_ANSWER = Limit(
    "editor.answer", 5_000, "ms", "for the editor to send or save a file, or to end a command"
)
EDITOR_OUTPUT = Limit(
    "editor.output", 1024 * 1024, "bytes", "of a command's output that an editor's terminal keeps"
)
EDITOR_OUTPUT_POLL = Limit(
    "editor.output_poll", 500, "ms", "between two looks at the output of an editor's terminal"
)
