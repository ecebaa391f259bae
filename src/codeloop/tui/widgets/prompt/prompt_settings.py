"""The settings of the prompt; `tui/choices.py` takes `keys` and `vim` from `tui.json`,
the others have no key there.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from codeloop.tui.widgets.prompt.prompt_entry import Delivery


class PromptSettings(Struct, frozen=True):
    """The settings of the prompt: `keys` by action (see `keys/prompt_bindings.py`);
    `vim`: whether vi's keys are on.

    `delivery`: when a prompt that is sent with Enter during a turn takes effect.

    A pasted text of more than `chip_lines` lines or `chip_characters` characters becomes a chip.
    """

    keys: Mapping[str, object] = field(default_factory=dict[str, object])
    delivery: Delivery = "steer"
    vim: bool = False
    placeholder: str = "Ask, or describe a task"
    chip_lines: int = 6
    chip_characters: int = 1_000
