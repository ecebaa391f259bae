"""Commands that choose the agent, model, thinking effort or permission profile: from a list,
or the next in order.
"""

from collections.abc import Sequence

from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import NO_VARIANT, ModelRef, format_model_ref
from codeloop.schema.permission import PROFILE_DESCRIPTIONS, PROFILES, Profile, parse_profile
from codeloop.schema.wire import replace
from codeloop.tui.actions.send import set_profile
from codeloop.tui.actions.show_dialog import make_context, show_dialog
from codeloop.tui.choices import find_model
from codeloop.tui.dialogs.agents import create_agent_picker
from codeloop.tui.dialogs.models import ModelPicker, create_variant_picker
from codeloop.tui.dialogs.profiles import create_profile_picker
from codeloop.tui.ui import Ui

YOLO_PROFILE = "yolo"
"""The profile that `switch_profile` skips: a key that is pressed once too often
must not allow everything.
"""


async def switch_agent(ui: Ui, _words: str) -> None:
    """Switch the next prompts to the next agent."""
    _move_to_agent(ui, 1)


async def switch_agent_back(ui: Ui, _words: str) -> None:
    """Switch the next prompts to the previous agent."""
    _move_to_agent(ui, -1)


async def switch_variant(ui: Ui, _words: str) -> None:
    """Switch to the model's next thinking effort; after the last one, to its default."""
    model, variants = ui.choices.require_model(ui.tab), ui.choices.list_variants(ui.tab)
    if not variants:
        raise UsageProblem("This model has no thinking levels.")
    # None: the default of the service.
    names: list[str | None] = [None, *variants]
    index = names.index(model.variant) if model.variant in names else 0
    ui.choices.use_model(ui.tab, replace(model, variant=names[(index + 1) % len(names)]))
    ui.draw()


async def switch_recent(ui: Ui, _words: str) -> None:
    """Switch to the model chosen before the current one."""
    _move_to_model(
        ui, ui.choices.model_memory.read().recent, 1, "No other model was chosen lately."
    )


async def switch_recent_back(ui: Ui, _words: str) -> None:
    """Switch to the model chosen after the current one."""
    _move_to_model(
        ui, ui.choices.model_memory.read().recent, -1, "No other model was chosen lately."
    )


async def switch_favourite(ui: Ui, _words: str) -> None:
    """Switch to the next favourite model."""
    _move_to_model(ui, ui.choices.model_memory.read().favourites, 1, "There is no other favourite.")


async def switch_favourite_back(ui: Ui, _words: str) -> None:
    """Switch to the previous favourite model."""
    _move_to_model(
        ui, ui.choices.model_memory.read().favourites, -1, "There is no other favourite."
    )


async def choose_profile(ui: Ui, words: str) -> None:
    """Choose the session's permission profile, or take the named one."""
    tab, name = ui.tab, words.strip()
    if not name:
        name = (
            await show_dialog(
                ui,
                create_profile_picker(
                    ui.choices.get_profile(tab) or "auto", lambda: ui.appearance.styles
                ),
            )
            or ""
        )
        if not name:
            return
    profile = parse_profile(name)
    if profile is None:
        raise UsageProblem(
            f"There is no profile {name}.{format_suggestion(find_similar(name, PROFILES))} "
            f"Choose {', '.join(PROFILES)}."
        )
    await _use_profile(ui, profile)
    ui.say(f"From the next call on, profile {profile} holds in this session.", "success")


async def switch_profile(ui: Ui, _words: str) -> None:
    """Switch to the next permission profile, skipping `yolo`."""
    names: list[Profile] = [each for each in PROFILES if each != YOLO_PROFILE]
    current_name = ui.choices.get_profile(ui.tab) or "auto"
    index = next((index for index, each in enumerate(names) if each == current_name), -1)
    name = names[(index + 1) % len(names)]
    await _use_profile(ui, name)
    ui.notify(f"Profile {name}: {PROFILE_DESCRIPTIONS[name]}", timeout=3)


async def _use_profile(ui: Ui, name: str) -> None:
    tab = ui.tab
    tab.profile = name
    if tab.session is not None:
        session = await set_profile(ui.client, tab.session.id, name)
        if tab.view is not None:
            # Before its event arrives: the key may be pressed again at once.
            tab.view.update_session(session)
    ui.draw()


def _move_to_agent(ui: Ui, step: int) -> None:
    names = [agent.name for agent in ui.choices.primary_agents]
    if names:
        current_name = ui.choices.find_agent(ui.tab)
        index = names.index(current_name) if current_name in names else 0
        ui.tab.agent = names[(index + step) % len(names)]
        ui.draw()


def _move_to_model(ui: Ui, references: Sequence[str], step: int, problem: str) -> None:
    """Switch to the model `step` places further in a list.
    Raises UsageProblem with `problem` if there is no other.
    """
    models = ui.choices.list_usable_models(references)
    model = ui.choices.resolve_model(ui.tab)
    names = [format_model_ref(each) for each in models]
    current_name = format_model_ref(model) if model is not None else ""
    if all(name == current_name for name in names):
        raise UsageProblem(
            f"{problem} {ui.keymap.format_key('model_list') or '/models'} lists all."
        )
    # From a model outside the list, a step forwards leads to the first of the list,
    # one backwards to the last.
    outside_index = -1 if step > 0 else 0
    index = names.index(current_name) if current_name in names else outside_index
    # It does not become the latest of the recent models: the next step would lead back.
    ui.tab.model = models[(index + step) % len(models)]
    ui.draw()


async def choose_agent(ui: Ui, words: str) -> None:
    """Choose the agent of the next prompts, or take the named one."""
    names = [agent.name for agent in ui.choices.primary_agents]
    if words and words not in names:
        raise UsageProblem(
            f"There is no agent {words}.{format_suggestion(find_similar(words, names))} There are: {', '.join(names)}."
        )
    name = words or await show_dialog(
        ui, create_agent_picker(make_context(ui), ui.choices.find_agent(ui.tab) or "")
    )
    if name:
        ui.tab.agent = name
        ui.draw()


async def choose_model(ui: Ui, words: str) -> None:
    """Choose the model of the next prompts, or take the named one."""
    # Models may have been added since, such as those of a local server that was started.
    await ui.choices.reload()
    if words:
        model: ModelRef | None = find_model(ui.choices, words)
    else:
        model = await show_dialog(
            ui,
            ModelPicker(
                make_context(ui), ui.choices.model_memory, ui.choices.resolve_model(ui.tab)
            ),
        )
    if model is not None:
        ui.choices.use_model(ui.tab, model)
        ui.draw()


async def choose_variant(ui: Ui, words: str) -> None:
    """Choose the model's thinking effort, or take the named one."""
    model, names = ui.choices.require_model(ui.tab), [NO_VARIANT, *ui.choices.list_variants(ui.tab)]
    if words and words not in names:
        raise UsageProblem(
            f"There is no effort {words} here.{format_suggestion(find_similar(words, names))} "
            f"There are: {', '.join(names)}."
        )
    if words:
        choice: ModelRef | None = replace(model, variant=None if words == NO_VARIANT else words)
    else:
        choice = await show_dialog(ui, create_variant_picker(make_context(ui), model))
    if choice is not None:
        ui.choices.use_model(ui.tab, choice)
        ui.draw()
