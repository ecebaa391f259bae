"""The patch tool as a free-form tool, whose argument is plain text of a grammar: models
of OpenAI are trained on it.
"""

from codeloop.model.chat import ToolSpec
from codeloop.schema.wire import JSON

PATCH_TOOL = "apply_patch"
PATCH_ARGUMENT = "patchText"
"""The one argument of the tool, which holds the text."""

PATCH_GRAMMAR = r"""start: "*** Begin Patch" NEWLINE section+ "*** End Patch" NEWLINE?

section: added | deleted | updated

added: "*** Add File: " LINE NEWLINE plus*
deleted: "*** Delete File: " LINE NEWLINE
updated: "*** Update File: " LINE NEWLINE moved? hunk*

moved: "*** Move to: " LINE NEWLINE
hunk: anchor+ change+ last? | change+ last?
anchor: "@@" (" " LINE)? NEWLINE
change: (plus | minus | same)
last: "*** End of File" NEWLINE

plus: "+" LINE? NEWLINE
minus: "-" LINE? NEWLINE
same: " " LINE? NEWLINE

LINE: /[^\r\n]+/
NEWLINE: /\r?\n/
"""
"""The patches that `workspace/edit/patch_parser.py` reads, in the syntax of Lark."""


def encode_patch_tool(spec: ToolSpec) -> JSON:
    """Return the tool's declaration as one that is called with text in place of JSON arguments."""
    return {
        "type": "custom",
        "name": spec.name,
        "description": spec.description,
        "format": {"type": "grammar", "syntax": "lark", "definition": PATCH_GRAMMAR},
    }
