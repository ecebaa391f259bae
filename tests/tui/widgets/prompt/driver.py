"""An app that is nothing but a prompt, for tests that press its keys."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from textual._xterm_parser import XTermParser
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from codeloop.schema.api.mcp import McpPromptCompletion
from codeloop.schema.api.session_inputs import AgentPartInput, FilePartInput, MessageWithParts
from codeloop.schema.api.session_messages import MessageId
from codeloop.schema.errors import OperationError
from codeloop.schema.event import StampedEvent
from codeloop.schema.message import ModelRef, UserMessage, UserTime
from codeloop.schema.operation import Gives, Operation, Takes
from codeloop.schema.part import FilePartSourceText, FileSource, TextPart
from codeloop.tui.widgets.prompt.completion.completer import CompletionRow, PromptCommand
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.tui.widgets.prompt.prompt import PromptInput
from codeloop.tui.widgets.prompt.prompt_messages import PromptSlashCommand, PromptSubmitted
from codeloop.tui.widgets.prompt.prompt_settings import PromptSettings

FILES = ["src/", "src/main.py", "src/other.py", "tests/test_main.py", "my file.txt", "README.md"]


class Answers:
    """A completer of a small project; `asked` are the queries for files."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.names = list(FILES)
        self.wanted: list[tuple[str, str, bool]] = []
        self.is_connected = True

    async def find_files(self, query: str) -> list[str]:
        self.asked.append(query)
        return [name for name in self.names if query.lower() in name.lower()]

    async def find_symbols(self, query: str) -> list[CompletionRow]:
        rows = [CompletionRow("@src/main.py#3-9", "symbol", "start_engine", "src/main.py:3")]
        return [row for row in rows if query in row.label]

    async def list_agents(self) -> list[CompletionRow]:
        return [CompletionRow("@explore", "agent", "explore", "looks around")]

    async def list_resources(self) -> list[CompletionRow]:
        return [
            CompletionRow("@docs:note://today", "resource", "docs:note://today", "Today's note")
        ]

    async def list_commands(self) -> list[PromptCommand]:
        return [
            PromptCommand("new", "", "start a new session"),
            PromptCommand("model", "PROVIDER/MODEL", "set the model"),
            PromptCommand("models", "", "list the models"),
            PromptCommand("themes", "[NAME]", "choose a theme"),
            PromptCommand(
                "p:greet", "$1 $2", "greets somebody (who [how])", completes_arguments=True
            ),
        ]

    async def complete_argument(
        self, command: str, text: str, *, may_start_server: bool
    ) -> McpPromptCompletion:
        self.wanted.append((command, text, may_start_server))
        *before, word = text.split(" ")
        people = ["Ada", "Alan", "Alan Kay"] if self.is_connected or may_start_server else []
        values = [each for each in people if each.startswith(word)]
        return McpPromptCompletion(
            argument="how" if before else "who", replaces=word, values=values
        )

    async def find_mentions(
        self, text: str, note: Callable[[str], object]
    ) -> tuple[list[FilePartInput], list[AgentPartInput]]:
        files = [
            _file(name, text)
            for name in self.names
            if f"@{name}" in text and not name.endswith("/")
        ]
        at = text.find("@explore")
        place = FilePartSourceText(value="@explore", start=at, end=at + 8)
        return files, [AgentPartInput(name="explore", source=place)] if at >= 0 else []


def _file(name: str, text: str) -> FilePartInput:
    start = text.index(f"@{name}")
    place = FilePartSourceText(value=f"@{name}", start=start, end=start + len(name) + 1)
    return FilePartInput(
        mime="text/plain",
        url=f"file:///p/{name}",
        filename=name,
        source=FileSource(path=name, text=place),
    )


class QueueServer:
    """A client of a session that works: it knows the prompts that wait."""

    def __init__(self, *texts: str) -> None:
        self.waiting: list[MessageWithParts] = []
        self.is_working_on_it = False
        self.deleted: list[MessageId] = []
        self.before_delete: Callable[[], object] = bool
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        name = f"msg_{len(self.waiting)}"
        model = ModelRef(provider_id="p", model_id="m")
        message = UserMessage(
            id=name, session_id="ses_1", time=UserTime(created=1), agent="build", model=model
        )
        said = TextPart(id="prt_1", text=text, session_id="ses_1", message_id=name)
        hidden = TextPart(
            id="prt_2", text="hidden", synthetic=True, session_id="ses_1", message_id=name
        )
        self.waiting.append(MessageWithParts(info=message, parts=[said, hidden]))

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        if isinstance(args, MessageId):
            self.before_delete()
            self.deleted.append(args)
            if self.is_working_on_it:
                raise OperationError("SessionBusyError", "it works on it")
            self.waiting = [each for each in self.waiting if each.info.id != args.message_id]
            return msgspec.convert(True, operation.gives)
        return msgspec.convert(self.waiting, operation.gives)

    async def follow(
        self, after: int | None = None, root: str | None = None
    ) -> AsyncGenerator[StampedEvent]:
        for stamped in ():
            yield stamped


class PromptApp(App[None]):
    """Shows a prompt at the bottom; `sent` is what it has submitted."""

    CSS = "Screen { align: left bottom; }"
    NOTIFICATION_TIMEOUT = 600.0  # a busy machine looks at them late

    def __init__(
        self, folder: Path, settings: PromptSettings | None = None, completer: Answers | None = None
    ) -> None:
        super().__init__()
        self.completer = completer or Answers()
        self.prompt = PromptInput(self.completer, PromptStore(folder), settings)
        self.sent: list[PromptSubmitted | PromptSlashCommand] = []
        self.notes: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.prompt

    def on_mount(self) -> None:
        self.prompt.focus()

    def on_prompt_submitted(self, event: PromptSubmitted) -> None:
        self.sent.append(event)

    def on_prompt_slash_command(self, event: PromptSlashCommand) -> None:
        self.sent.append(event)

    @property
    def text(self) -> str:
        return self.prompt.entry.text

    @property
    def texts(self) -> list[str]:
        """What was sent, in order."""
        return [
            each.entry.text if isinstance(each, PromptSubmitted) else f"/{each.name} {each.words}"
            for each in self.sent
        ]


class Hand:
    """Types into a prompt and reads the screen."""

    def __init__(self, app: PromptApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def type(self, text: str) -> None:
        """Write a text as a terminal would."""
        for event in XTermParser().feed(text):
            self.app.post_message(event)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, is_so: Callable[[], object]) -> None:
        """Let the app work until something holds."""
        for _ in range(6_000):
            if is_so():
                return
            await self.pilot.pause(0.01)
        raise AssertionError(self.screen())

    def screen(self) -> str:
        """Return the rows of the screen that hold something, without blanks at their ends."""
        rows = self.app.screen._compositor.render_strips()
        lines = ["".join(segment.text for segment in row).rstrip() for row in rows]
        return "\n".join(lines).strip("\n")


@asynccontextmanager
async def prompting(
    folder: Path,
    settings: PromptSettings | None = None,
    completer: Answers | None = None,
    size: tuple[int, int] = (60, 20),
) -> AsyncGenerator[Hand]:
    """Run an app with a prompt."""
    app = PromptApp(folder, settings, completer)
    async with app.run_test(size=size) as pilot:
        yield Hand(app, pilot)
