"""A session whose model or provider is not configured any more goes on with the configured one,
and says so.
"""

from pathlib import Path

import pytest

from tests.cli.program import Desk, serving, steps
from tests.support.answers import Answer


@pytest.mark.slow
def test_a_session_goes_on_with_the_configured_model_when_its_own_is_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Here."))) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "first").returncode == 0
        config = next((desk.home / "config").glob("codeloop.json*"))
        config.write_text(
            config.read_text().replace('"local"', '"other"').replace("local/m", "other/m")
        )
        went_on = desk.run("run", "--continue", "second")
        assert (went_on.returncode, went_on.stdout) == (0, "Here.\n"), went_on.stderr
        assert "local/m is not there any more. The session goes on with other/m." in went_on.stderr
        # From then on it is the session's.
        assert "not there any more" not in desk.run("run", "--continue", "third").stderr
        # One that is named and wrong is a mistake.
        wrong = desk.run("run", "--continue", "-m", "other/wrong", "fourth")
        assert wrong.returncode != 0
        assert "has no model `wrong`" in wrong.stderr
