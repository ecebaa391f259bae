"""The patch tool as a tool that takes plain text by a grammar, which some models were trained to call."""

from codeloop.model.chat import ToolSpec
from codeloop.schema.wire import JSON

PATCH_TOOL = "apply_patch"
PATCH_ARGUMENT = "patchText"
"""The one argument of the tool, which holds the text."""

GRAMMAR = r"""start: "*** Begin Patch" NEWLINE section+ "*** End Patch" NEWLINE?

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
"""In the syntax of Lark: the envelope that `workspace/edit/patch_parser.py` reads."""


def patch_tool(spec: ToolSpec) -> JSON:
    """Return the tool in the form of one that is called with text, not with arguments."""
    return {
        "type": "custom",
        "name": spec.name,
        "description": spec.description,
        "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR},
    }
