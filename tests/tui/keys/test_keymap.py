"""Mistakes in a user's `keybinds` are reported; names that only the reference has are ignored."""

import pytest

from codeloop.tui.commands import COMMANDS
from codeloop.tui.keys.key_names import find_unknown_keys
from codeloop.tui.keys.keybind_problems import find_keybind_problems
from codeloop.tui.keys.keymap import Keymap
from codeloop.tui.keys.prompt_bindings import PROMPT_BINDINGS, map_prompt_keys


@pytest.mark.parametrize("keys", [row.keys for row in (*COMMANDS, *PROMPT_BINDINGS)])
def test_every_default_key_is_one(keys: str) -> None:
    assert find_unknown_keys(keys) == []


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        ("ctrl++,Ctrl+Shift+Home,cmd+z,return,é,<leader>?,f12,none", []),
        ("ctrl+foo+n, crtl+p", ["ctrl+foo+n", "crtl+p"]),
        (
            "<leader>,f25,ctrl,ctrl+,<leader>hello",
            ["<leader>", "f25", "ctrl", "ctrl+", "<leader>hello"],
        ),
    ],
)
def test_keys_that_no_keyboard_has_are_told(keys: str, wrong: list[str]) -> None:
    assert find_unknown_keys(keys) == wrong
    assert len(Keymap({"help": "f1"}, {"help": keys}).problems) == len(wrong)


def test_names_that_nothing_has_are_told() -> None:
    chosen = {
        "sesion_list": "f9",
        "which_key_toggle": "f4",
        "input_undo": "super+foo",
        "help": "none",
        "leader": "f3",
    }
    assert find_keybind_problems(chosen) == [
        "keybinds.input_undo: there is no key super+foo.",
        "keybinds.sesion_list: there is no such command. Did you mean `session_list`?",
    ]


def test_a_value_that_is_no_text_is_told_of_commands_and_of_the_prompts_actions() -> None:
    assert len(Keymap({"help": "f1"}, {"help": 1}).problems) == 1
    assert find_keybind_problems({"input_undo": 1, "input_redo": False}) == [
        'keybinds.input_undo is not a text such as "ctrl+p" or "<leader>n,f2".'
    ]


def test_a_key_of_the_prompt_is_taken_away_by_none_and_by_false() -> None:
    for nothing in ("none", " none ", False):
        assert "ctrl+j" not in map_prompt_keys({"input_newline": nothing})


def test_modifiers_of_a_letter_beyond_ascii_are_kept() -> None:
    assert Keymap({"help": "f1"}, {"help": "Ctrl+ä,Control+É"}).keys["help"] == ("ctrl+ä", "ctrl+é")


@pytest.mark.parametrize(
    ("keys", "leader"), [("ctrl+x,f9", "ctrl+x"), ("none,f3", "f3"), (" ", "ctrl+x"), (7, "ctrl+x")]
)
def test_the_first_of_several_keys_is_the_leader(keys: object, leader: str) -> None:
    assert Keymap({"help": "<leader>h"}, {"leader": keys}).leader == leader


def test_without_a_leader_no_key_that_follows_it_is_shown() -> None:
    for nothing in ("none", " none ", False):
        keymap = Keymap({"help": "<leader>h,f1", "new": "<leader>n"}, {"leader": nothing})
        assert keymap.problems == []
        assert (keymap.format_keys("help"), keymap.format_key("new")) == (["f1"], "")
        assert not keymap.press("ctrl+x").begins_sequence
