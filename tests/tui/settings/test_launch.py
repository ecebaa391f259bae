"""The options of the command line precede the settings of the user."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.schema.message import Session
from codeloop.tui.settings.ui_launch import AskTrust, UiLaunch
from codeloop.tui.start import create_ui


@pytest.mark.parametrize(
    ("setting", "option", "is_shown"),
    [(False, True, True), (False, None, False), (True, None, True)],
)
def test_thinking_is_shown_with_the_option_whatever_the_settings_say(
    tmp_path: Path, setting: bool, option: bool | None, is_shown: bool
) -> None:
    file = tmp_path / "tui.json"
    file.write_text(f'{{"thinking": {str(setting).lower()}}}')

    def open_project(_ask: AskTrust) -> AbstractAsyncContextManager[Target]:
        raise NotImplementedError

    async def choose(_target: Target) -> Session | None:
        return None

    async def create(_client: Client) -> Session:
        raise NotImplementedError

    launch = UiLaunch(
        open_project=open_project,
        choose_session=choose,
        create_session=create,
        directory=str(tmp_path),
        state_folder=tmp_path,
        settings_files=(file,),
        thinking=option,
    )
    assert create_ui(launch).appearance.thinking is is_shown
