"""Commands that open a dialog and carry out the choice made in it; `show_dialog` opens any dialog."""

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from textual.screen import Screen

from codeloop.kit.terminal_text import one_line
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.schema.api.session_requests import SessionId, UpdateSession
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import NO_VARIANT, ModelRef
from codeloop.schema.operation import SESSION_CHILDREN, SESSION_DELETE, SESSION_GET, SESSION_UPDATE
from codeloop.schema.wire import replace
from codeloop.tui.actions.sidebar import refresh_sidebar
from codeloop.tui.actions.ui_settings import change_setting, list_settings
from codeloop.tui.actions.view import scroll_to_item
from codeloop.tui.choices import find_model
from codeloop.tui.dialogs.agents import create_agent_picker
from codeloop.tui.dialogs.export import export_session
from codeloop.tui.dialogs.mcp import McpPicker
from codeloop.tui.dialogs.models import ModelPicker, create_variant_picker
from codeloop.tui.dialogs.palette import PaletteRow, create_help, create_palette
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.session_pins import SessionPins
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.providers.provider_picker import ProviderPicker
from codeloop.tui.dialogs.sessions import ChildPicker, ForkPicker, SessionPicker, describe_deletion
from codeloop.tui.dialogs.settings import SettingsPicker
from codeloop.tui.dialogs.themes import ThemePicker
from codeloop.tui.dialogs.timeline import Timeline, TimelineStep
from codeloop.tui.keys.keymap import Keymap
from codeloop.tui.keys.prompt_bindings import PROMPT_BINDINGS
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry

T = TypeVar("T")
ALL_KEYS_MIN_WIDTH = 60
"""Cells of the screen from which all keys of a command are listed, not only the first."""


async def show_dialog(ui: Ui, screen: Screen[T]) -> T | None:
    """Show a dialog and return its result, or None; then the prompt gets the focus back."""
    future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
    ui.push_screen(screen, future.set_result)
    result = await future
    ui.tab.take_focus()
    # The command may open another dialog now. Keys wait for a dialog that is about to open, counted from this time.
    if (task := asyncio.current_task()) is not None and ui.tasks.get(task) is not None:
        ui.tasks[task] = time.monotonic()
    return result


def make_context(ui: Ui) -> DialogContext:
    """Make the context that dialogs need. Raises UsageProblem while the project is still being opened."""

    async def ask_screen(screen: Screen[Any]) -> Any:
        return await show_dialog(ui, screen)

    return DialogContext(ui.client, lambda: ui.appearance.styles, ask_screen)


async def choose_session(ui: Ui, _words: str) -> None:
    """Choose a session to show."""
    current = ui.tab.session.id if ui.tab.session else ""
    session_id = await show_dialog(ui, SessionPicker(make_context(ui), SessionPins(ui.launch.state_folder), current))
    if session_id:
        await ui.open_tab(await ui.client.call(SESSION_GET, SessionId(session_id=session_id)))


async def rename_session(ui: Ui, words: str) -> None:
    """Rename the session to the given words, or ask for a title."""
    session, title = ui.session, words.strip()
    if not title:
        answer = await show_dialog(ui, TextInput("Rename session", lambda: ui.appearance.styles, session.title))
        title = (answer or "").strip()
    if title:
        await ui.client.call(SESSION_UPDATE, UpdateSession(session_id=session.id, title=title))
        ui.notify(f"The session is called “{one_line(title, 60)}”.", markup=False)


async def choose_child(ui: Ui, session_id: str) -> None:
    """Show the session of a subagent: the given one, or one to choose."""
    child_id = session_id or await show_dialog(ui, ChildPicker(make_context(ui), ui.session.id))
    if child_id:
        await ui.open_tab(await ui.client.call(SESSION_GET, SessionId(session_id=child_id)))


async def choose_fork(ui: Ui, _words: str) -> None:
    """Choose a session in the tree of forks around this one."""
    session_id = await show_dialog(ui, ForkPicker(make_context(ui), ui.session))
    if session_id:
        await ui.open_tab(await ui.client.call(SESSION_GET, SessionId(session_id=session_id)))


async def show_timeline(ui: Ui, _words: str) -> None:
    """Show the timeline: scroll to a prompt, copy it, fork before it, or undo from it on."""
    await _apply_timeline_step(ui, await show_dialog(ui, Timeline(make_context(ui), ui.session.id)))


async def rewind_to_prompt(ui: Ui, _words: str) -> None:
    """Choose a prompt to rewind to: undo it and all later turns, and put it into the editor."""
    await _apply_timeline_step(ui, await show_dialog(ui, Timeline(make_context(ui), ui.session.id, goes_back=True)))


async def _apply_timeline_step(ui: Ui, step: TimelineStep | None) -> None:
    """Carry out the choice made in the timeline."""
    if step is None:
        return
    if step.action == "jump":
        await ui.load_messages_until(step.message_id)
        scroll_to_item(ui, step.message_id)
    elif step.action == "copy":
        ui.copy_to_clipboard(step.text)
        ui.notify("The prompt is copied.")
    elif step.action == "fork":
        await ui.open_tab(await ui.client.call(SESSION_GET, SessionId(session_id=step.session_id)))
        ui.tab.prompt.set_entry(PromptEntry(step.text))
    else:
        ui.tab.prompt.set_entry(PromptEntry(step.text))


async def choose_model(ui: Ui, words: str) -> None:
    """Choose the model of the next prompts, or take the named one."""
    # Models may have been added since, such as those of a local server that was started.
    await ui.choices.reload()
    if words:
        model: ModelRef | None = find_model(ui.choices, words)
    else:
        model = await show_dialog(
            ui, ModelPicker(make_context(ui), ui.choices.model_memory, ui.choices.resolve_model(ui.tab))
        )
    if model is not None:
        ui.choices.use_model(ui.tab, model)
        ui.draw()


async def choose_variant(ui: Ui, words: str) -> None:
    """Choose the model's thinking effort, or take the named one."""
    model, names = ui.choices.resolve_model(ui.tab), [NO_VARIANT, *ui.choices.list_variants(ui.tab)]
    if words and words not in names:
        raise UsageProblem(
            f"There is no effort {words} here.{format_suggestion(find_similar(words, names))} "
            f"There are: {', '.join(names)}."
        )
    if model is not None and words:
        choice = replace(model, variant=None if words == NO_VARIANT else words)
    else:
        choice = await show_dialog(ui, create_variant_picker(make_context(ui), model)) if model is not None else None
    if choice is not None:
        ui.choices.use_model(ui.tab, choice)
        ui.draw()


async def choose_agent(ui: Ui, words: str) -> None:
    """Choose the agent of the next prompts, or take the named one."""
    names = [agent.name for agent in ui.choices.primary_agents]
    if words and words not in names:
        raise UsageProblem(
            f"There is no agent {words}.{format_suggestion(find_similar(words, names))} There are: {', '.join(names)}."
        )
    name = words or await show_dialog(ui, create_agent_picker(make_context(ui), ui.choices.find_agent(ui.tab) or ""))
    if name:
        ui.tab.agent = name
        ui.draw()


async def connect_provider(ui: Ui, _words: str) -> None:
    """Set up a provider of models, and take one of them for the next prompts."""
    model = await show_dialog(ui, ProviderPicker(make_context(ui)))
    await ui.choices.reload()
    if model is not None:
        ui.choices.use_model(ui.tab, model)
    ui.draw()


async def show_servers(ui: Ui, _words: str) -> None:
    """Show the MCP servers; connect them, and sign in."""
    await show_dialog(ui, McpPicker(make_context(ui)))
    await refresh_sidebar(ui)


async def choose_theme(ui: Ui, words: str) -> None:
    """Choose a theme, which is shown while the cursor is on it."""

    def show(name: str) -> None:
        ui.appearance.use_theme(name)
        ui.restyle()

    if words:
        show(words)
        theme: str | None = words
    else:
        appearance = ui.appearance
        theme = await show_dialog(
            ui, ThemePicker(appearance.list_themes(), appearance.theme_name, show, lambda: appearance.styles)
        )
    if theme:
        ui.choices.save("theme", theme)


async def show_settings(ui: Ui, _words: str) -> None:
    """Show the settings, where they are set, and change them."""
    await show_dialog(ui, SettingsPicker(make_context(ui), partial(list_settings, ui), partial(change_setting, ui)))
    await ui.choices.reload()
    ui.draw()


async def export_to_file(ui: Ui, _words: str) -> None:
    """Write the session to a file."""
    file = await export_session(make_context(ui), ui.session.id, Path(ui.launch.directory))
    if file is not None:
        ui.say(f"Written: {file}", "success")


async def delete_session(ui: Ui, _words: str) -> None:
    """Delete the session, after asking."""
    session = ui.session
    children = await ui.client.call(SESSION_CHILDREN, SessionId(session_id=session.id))
    text = describe_deletion(session.title, len(children))
    if await show_dialog(ui, Confirm("Delete session?", text, "delete", lambda: ui.appearance.styles)):
        await ui.client.call(SESSION_DELETE, SessionId(session_id=session.id))


def list_commands(ui: Ui) -> list[PaletteRow]:
    """Return the commands as the palette lists them."""
    return [PaletteRow(row.id, row.title, row.group, ui.keymap.format_key(row.id), row.slash) for row in ui.commands]


async def show_palette(ui: Ui, _words: str) -> None:
    """Choose a command and run it."""
    command_id = await show_dialog(ui, create_palette(list_commands(ui), lambda: ui.appearance.styles))
    if command_id:
        ui.run_command(next(row for row in ui.commands if row.id == command_id))


async def show_help(ui: Ui, _words: str) -> None:
    """Show all commands with their keys, and the keys of the prompt."""
    keymap = Keymap({row.id: row.keys for row in PROMPT_BINDINGS}, ui.choices.settings.keybinds)
    commands = {row.id: row for row in ui.commands}

    def keys(name: str) -> str:
        names = (ui.keymap if name in commands else keymap).format_keys(name)
        return ", ".join(names[: None if ui.size.width >= ALL_KEYS_MIN_WIDTH else 1])

    rows = [replace(row, keys=keys(row.id)) for row in list_commands(ui)]
    rows += [
        PaletteRow(row.id, row.description, "In the prompt", keys(row.id))
        for row in PROMPT_BINDINGS
        if row.id not in commands
    ]
    command_id = await show_dialog(ui, create_help(rows, lambda: ui.appearance.styles))
    if command_id in commands:
        ui.run_command(commands[command_id])
    elif command_id:
        ui.tab.prompt.run(command_id)
