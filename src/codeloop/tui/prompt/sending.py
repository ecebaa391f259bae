"""Makes what stands in the prompt into what is sent: chips expanded, mentions found, commands told from prompts."""

import asyncio
import os
import re
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from codeloop.client.slash.names import similar_names
from codeloop.kit.suggest import meant
from codeloop.schema.api.session_inputs import AgentPartInput, FilePartInput
from codeloop.schema.part import FilePartSourceText, FileSource, ResourceSource
from codeloop.tui.prompt.completion import Completer, PromptCommand
from codeloop.tui.prompt.entry import PromptEntry
from codeloop.tui.prompt.memory.kept import KeptPrompt
from codeloop.tui.prompt.outside.images import typed_images
from codeloop.tui.prompt.text.chips import Chip, Chips, added, expanded

_COMMAND = re.compile(r"/([^\s/]+)(?:\s+(.*))?\Z", re.DOTALL)


class Call:
    """A command with what was typed after its name."""

    def __init__(self, name: str, words: str, files: tuple[FilePartInput, ...]) -> None:
        self.name = name
        self.words = words
        self.files = files


class UnknownCommand(Exception):
    """There is no such command; the text says which may be meant."""


class Sending:
    """Prepares prompts one after the other, in the order in which they were sent."""

    def __init__(self, completer: Completer, note: Callable[[str], None]) -> None:
        self._completer = completer
        self._note = note
        self._turn = asyncio.Lock()

    async def prepared(self, kept: KeptPrompt) -> PromptEntry | Call:
        """Prepare a prompt for sending: its chips expanded, its command parsed. Raises UnknownCommand."""
        async with self._turn:
            text = expanded(kept.chips, kept.text)
            if kept.mode == "shell":
                return PromptEntry(text, "shell")
            called = _COMMAND.match(kept.text)
            if called is not None:
                commands = await self._completer.commands()
                names = [row.name for row in commands]
                name = called[1] if called[1] in names else _also(called[1], commands)
                if name is not None:
                    words = expanded(kept.chips, called[2] or "")
                    return Call(name, words.strip(), _images(kept))
                if not os.path.lexists(f"/{called[1]}"):
                    also = [each for row in commands for each in row.also]
                    close = meant(f"/{each}" for each in similar_names(called[1], names, also))
                    raise UnknownCommand(
                        f"Unknown command: /{called[1]}.{close} To send it as a prompt, put a space first."
                    )
            files: list[FilePartInput] = []
            agents: list[AgentPartInput] = []
            if "@" in kept.text:
                files, agents = await self._completer.mentioned(kept.text, self._note)
            if "/" in kept.text:
                files += await self._typed(kept.text)
            placed = [replace(file, source=_moved_file(kept, file.source)) for file in files]
            named = [replace(agent, source=_moved(kept, agent.source)) for agent in agents]
            return PromptEntry(text, "prompt", (*placed, *_images(kept)), tuple(named))

    async def _typed(self, text: str) -> list[FilePartInput]:
        """Return the images whose paths were typed, each with the place of its path."""
        notes = list[str]()
        found = await asyncio.to_thread(lambda: list(typed_images(text, notes.append)))
        for note in notes:
            self._note(note)
        return [
            _placed(image, FilePartSourceText(value=text[start:end], start=start, end=end))
            for start, end, image in found
        ]


def _also(name: str, commands: Iterable[PromptCommand]) -> str | None:
    """Return which command has this as another name."""
    return next((row.name for row in commands if name in row.also), None)


def _images(kept: KeptPrompt) -> tuple[FilePartInput, ...]:
    """Return the images, each with the place of its label."""
    found: list[FilePartInput] = []
    for char, chip in kept.chips.items():
        if chip.url:
            start = len(expanded(kept.chips, kept.text[: kept.text.index(char)]))
            found.append(_placed(chip, FilePartSourceText(value=chip.label, start=start, end=start + len(chip.label))))
    return tuple(found)


def _placed(image: Chip, place: FilePartSourceText) -> FilePartInput:
    """Return an image as it is sent, for a place of the text."""
    source = FileSource(path=image.name, text=place)
    return FilePartInput(mime=image.mime, url=image.url, filename=image.name, source=source)


def _moved_file(kept: KeptPrompt, source: object) -> FileSource | ResourceSource | None:
    if not isinstance(source, FileSource | ResourceSource):
        return None
    return replace(source, text=_moved(kept, source.text))


def _moved(kept: KeptPrompt, place: FilePartSourceText | None) -> FilePartSourceText | None:
    """Return a place in the text as it is typed as one in the text that is sent."""
    if place is None:
        return None
    shift = len(expanded(kept.chips, kept.text[: place.start])) - place.start
    return replace(place, start=place.start + shift, end=place.end + shift)


def _find_label(text: str, place: FilePartSourceText) -> int:
    """Return where a label stands: at its place, else where it moved to; -1 if it is gone."""
    return place.start if text[place.start : place.end] == place.value else text.find(place.value)


def kept_of(entry: PromptEntry) -> KeptPrompt:
    """Return a prompt that was sent as one to write on: its images are chips again, its mentions words."""
    text, chips = entry.text, Chips()
    placed: list[tuple[int, int, str]] = []
    for file in entry.files:
        if not file.url.startswith("data:"):
            continue
        place = file.source.text if file.source is not None else None
        label = place.value if place is not None else "[Image]"
        char = added(chips, Chip(label, url=file.url, mime=file.mime, name=file.filename or "image"), "".join(chips))
        if place is not None and (start := _find_label(text, place)) >= 0:
            placed.append((start, start + len(place.value), char))
        else:
            text += f" {char}"
    for start, end, char in sorted(placed, reverse=True):
        text = text[:start] + char + text[end:]
    return KeptPrompt(text, entry.mode, chips)
