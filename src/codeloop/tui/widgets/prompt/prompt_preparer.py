"""Turns the editor's content into a prompt to send: expands chips, finds mentions and images,
recognises commands.
"""

import asyncio
import os
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from codeloop.client.slash.commands import suggest_commands
from codeloop.kit.text.patterns import compile_once
from codeloop.kit.text.suggest import format_suggestion
from codeloop.schema.api.session_inputs import AgentPartInput, FilePartInput
from codeloop.schema.part import FilePartSourceText, FileSource, ResourceSource
from codeloop.tui.editor.chips import Chip, Chips, add_chip, expand_chips
from codeloop.tui.widgets.prompt.completion.completer import Completer, PromptCommand
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt
from codeloop.tui.widgets.prompt.image_paths import find_image_paths
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry

# `/name`, or `/name words`, up to the end of the text
_COMMAND = r"(?s)/([^\s/]+)(?:\s+(.*))?\Z"


class SlashCall:
    """A slash command that was typed, with the text after its name and the images in it."""

    def __init__(self, name: str, words: str, files: tuple[FilePartInput, ...]) -> None:
        self.name = name
        self.words = words
        self.files = files


class UnknownCommand(Exception):
    """There is no such command; the message suggests similar ones."""


class PromptPreparer:
    """Prepares prompts one at a time, so that they are sent in the order in
    which they were submitted.
    """

    def __init__(self, completer: Completer, note: Callable[[str], None]) -> None:
        self._completer = completer
        self._note = note
        self._lock = asyncio.Lock()

    async def prepare(self, prompt: StoredPrompt) -> PromptEntry | SlashCall:
        """Prepare a prompt for sending: its chips expanded, its command parsed.
        Raises UnknownCommand.
        """
        async with self._lock:
            text = expand_chips(prompt.chips, prompt.text)
            if prompt.mode == "shell":
                return PromptEntry(text, "shell")
            match = compile_once(_COMMAND).match(prompt.text)
            if match is not None:
                commands = await self._completer.list_commands()
                names = [command.name for command in commands]
                name = match[1] if match[1] in names else _find_alias(match[1], commands)
                if name is not None:
                    words = expand_chips(prompt.chips, match[2] or "")
                    return SlashCall(name, words.strip(), _list_chip_images(prompt))
                # A path such as /etc begins a prompt.
                if not os.path.lexists(f"/{match[1]}"):
                    aliases = [alias for command in commands for alias in command.aliases]
                    suggestion = format_suggestion(
                        f"/{each}" for each in suggest_commands(match[1], names, aliases)
                    )
                    raise UnknownCommand(
                        f"Unknown command: /{match[1]}.{suggestion} To send it as a prompt, put a space first."
                    )
            files: list[FilePartInput] = []
            agents: list[AgentPartInput] = []
            # Looked for in the text as it was typed: what was pasted as a chip mentions nothing.
            if "@" in prompt.text:
                files, agents = await self._completer.find_mentions(prompt.text, self._note)
            if "/" in prompt.text:
                files += await self._find_images(prompt.text)
            attachments = [
                replace(file, source=_shift_source(prompt, file.source)) for file in files
            ]
            mentions = [
                replace(agent, source=_shift_span(prompt, agent.source)) for agent in agents
            ]
            return PromptEntry(
                text, "prompt", (*attachments, *_list_chip_images(prompt)), tuple(mentions)
            )

    async def _find_images(self, text: str) -> list[FilePartInput]:
        """Return the images whose paths were typed, each with its path's range."""
        # In a thread, since reading images may take long;
        # notes are shown by the thread of the screen.
        notes = list[str]()
        images = await asyncio.to_thread(lambda: list(find_image_paths(text, notes.append)))
        for note in notes:
            self._note(note)
        return [
            _make_attachment(image, FilePartSourceText(value=text[start:end], start=start, end=end))
            for start, end, image in images
        ]


def _find_alias(name: str, commands: Iterable[PromptCommand]) -> str | None:
    """Return the name of the command that has this as another name; None: none has."""
    return next((command.name for command in commands if name in command.aliases), None)


def _list_chip_images(prompt: StoredPrompt) -> tuple[FilePartInput, ...]:
    """Return the images among the chips of a prompt,
    each with its label's range in the sent text.
    """
    files: list[FilePartInput] = []
    for char, chip in prompt.chips.items():
        if chip.url:
            start = len(expand_chips(prompt.chips, prompt.text[: prompt.text.index(char)]))
            files.append(
                _make_attachment(
                    chip,
                    FilePartSourceText(value=chip.label, start=start, end=start + len(chip.label)),
                )
            )
    return tuple(files)


def _make_attachment(image: Chip, span: FilePartSourceText) -> FilePartInput:
    """Return an image as an attachment, for a range of the text."""
    source = FileSource(path=image.name, text=span)
    return FilePartInput(mime=image.mime, url=image.url, filename=image.name, source=source)


def _shift_source(prompt: StoredPrompt, source: object) -> FileSource | ResourceSource | None:
    if not isinstance(source, FileSource | ResourceSource):
        return None
    return replace(source, text=_shift_span(prompt, source.text))


def _shift_span(prompt: StoredPrompt, span: FilePartSourceText | None) -> FilePartSourceText | None:
    """Translate a range of the typed text to one of the sent text, in which chips are longer."""
    if span is None:
        return None
    shift = len(expand_chips(prompt.chips, prompt.text[: span.start])) - span.start
    return replace(span, start=span.start + shift, end=span.end + shift)


def _find_label(text: str, span: FilePartSourceText) -> int:
    """Return the offset of a label in a text: that of `span`, else of its first occurrence;
    -1 if there is none.
    """
    return span.start if text[span.start : span.end] == span.value else text.find(span.value)


def to_stored_prompt(entry: PromptEntry) -> StoredPrompt:
    """Turn a sent prompt back into an editable one: images become chips, mentions text."""
    text, chips = entry.text, Chips()
    spans: list[tuple[int, int, str]] = []
    for file in entry.files:
        if not file.url.startswith("data:"):
            continue
        span = file.source.text if file.source is not None else None
        label = span.value if span is not None else "[Image]"
        char = add_chip(
            chips,
            Chip(label, url=file.url, mime=file.mime, name=file.filename or "image"),
            "".join(chips),
        )
        if span is not None and (start := _find_label(text, span)) >= 0:
            spans.append((start, start + len(span.value), char))
        else:
            text += f" {char}"
    # From the end, so that the positions before stay valid.
    for start, end, char in sorted(spans, reverse=True):
        text = text[:start] + char + text[end:]
    return StoredPrompt(text, entry.mode, chips)
