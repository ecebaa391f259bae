"""Cached listings of servers' offers, so that requests can name tools of servers not started."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import create_private_folder, read_start, write_atomically
from codeloop.kit.text.diff import make_unified_diff
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.limits import MCP_FILE, MCP_INSTRUCTIONS
from codeloop.schema.wire import DECODE_ERRORS, JSON, Wire


class ListedTool(Wire):
    """One tool. `schema`: the JSON Schema of its arguments;
    `read_only`: its own claim, which permits nothing.
    """

    name: str
    description: str = ""
    schema: JSON = {}
    title: str = ""
    read_only: bool = False


class ListedResource(Wire):
    """Something to read, by its address; with `is_template`, a pattern for addresses."""

    uri: str
    name: str
    description: str = ""
    mime: str = ""
    is_template: bool = False


class PromptArgument(Wire):
    """One argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class ListedPrompt(Wire):
    """A prompt that the user can call by name."""

    name: str
    description: str = ""
    arguments: list[PromptArgument] = []


class Listing(Wire):
    """Everything that a server offers. `protocol`: the version that was agreed on;
    `transport`: how it was reached.

    `problems`: the lists that it advertises and can't give, and tools that can't be used,
    each with the reason.
    """

    server: str = ""
    protocol: str = ""
    transport: str = ""
    instructions: str = ""
    problems: list[str] = []
    tools: list[ListedTool] = []
    resources: list[ListedResource] = []
    prompts: list[ListedPrompt] = []

    @property
    def instructions_line(self) -> str:
        """The start of the server's instructions, on one line, for the model."""
        return one_line(self.instructions, MCP_INSTRUCTIONS.value)

    @property
    def text(self) -> str:
        """All text of the server that the model may see, one value a line."""
        lines = [
            *([f"instructions {self.instructions_line}"] if self.instructions_line else []),
            *_format_tools(self.tools),
        ]
        return "\n".join(lines) + "\n" if lines else ""


def _format_tools(tools: list[ListedTool]) -> Iterator[str]:
    # Sorted, so that another order of the same tools is not a change that the user is asked about.
    for tool in sorted(tools, key=lambda each: each.name):
        yield f"tool {tool.name}"
        for line in tool.description.splitlines():
            yield f"  {line}"
        schema = msgspec.json.format(msgspec.json.encode(tool.schema, order="sorted"), indent=2)
        for line in schema.decode("utf-8", "replace").splitlines():
            yield f"  {line}"


def has_new_text(before: Listing, after: Listing) -> bool:
    """Return whether `after` has text for the model that `before` lacked: new tools,
    changed descriptions.

    A tool of which only `title` or `read_only` changed counts too;
    `diff_listings` shows nothing of these.
    """
    listed_tools = {tool.name: tool for tool in before.tools}
    return after.instructions_line not in {"", before.instructions_line} or any(
        listed_tools.get(tool.name) != tool for tool in after.tools
    )


def diff_listings(before: Listing, after: Listing) -> str:
    """Return the unified diff between the texts of two listings."""
    return make_unified_diff("tools", before.text, after.text).patch


class Listings:
    """The listings on disk: a file for each definition, by its `listing_key`.
    What can't be read counts as unknown.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Listing | None:
        """Return the stored listing of a definition's server, the last that the user agreed to."""
        with suppress(OSError, *DECODE_ERRORS):
            return msgspec.json.decode(read_start(self._file(key), MCP_FILE.value), type=Listing)
        return None

    def put(self, key: str, listing: Listing) -> None:
        """Store a listing; if writing fails, the server is asked again next time."""
        with suppress(OSError):
            create_private_folder(self._folder)
            write_atomically(self._file(key), msgspec.json.encode(listing))

    def forget(self, key: str) -> None:
        """Remove the listing of a definition."""
        with suppress(OSError):
            self._file(key).unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"
