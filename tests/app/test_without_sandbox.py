"""Where no sandbox can be had: what runs all the same, with a warning,
and what is refused if one is required.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codeloop.app.extensions.start_host import start_host
from codeloop.app.language.servers import start_server
from codeloop.app.models.open_models import SingleModel
from codeloop.extend.host.host_callbacks import HostKey
from codeloop.lsp.servers.choice import ServerChoice
from codeloop.lsp.servers.server_row import ServerRow
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.pty import PTY_CREATE, CreatePty
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.config import ProgramSandboxConfig
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import ToastShown
from codeloop.schema.wire import replace
from codeloop.workspace.process import program_sandboxes, shells
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.support.scripted_project import (
    RequestRecorder,
    ScriptedProject,
    make_answer,
    make_call,
    make_startup,
    open_in_process,
    read_result,
)

NO_SANDBOX = "No sandbox can be had on this machine"
REQUIRED = "The configuration requires one (sandbox)"
WARNING = f"{NO_SANDBOX}, so hooks, formatters, language servers and extensions run without one"
OWN_SANDBOX = {"network": "off"}


@asynccontextmanager
async def open_bare_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, sandbox: Any
) -> AsyncGenerator[tuple[ScriptedProject, list[str]]]:
    """Open a project on a machine that has no sandbox, with the texts that the user is shown.

    It has a hook and a formatter with this `sandbox`, each of which leaves a file.
    """
    for module in (program_sandboxes, shells):
        monkeypatch.setattr(module, "Sandboxes", partial(Sandboxes, backends=()))
    hook = {"type": "command", "command": f"touch {tmp_path}/hooked", "sandbox": sandbox}
    formatter = {
        "command": ["touch", f"{tmp_path}/formatted"],
        "extensions": [".txt"],
        "sandbox": sandbox,
    }
    answers = [
        make_answer(make_call("write", filePath="a.txt", content="x\n")),
        make_answer(make_call("bash", command="touch commanded")),
        ScriptedAnswer(text="Done."),
    ]
    toasts: list[str] = []
    (tmp_path / "work").mkdir()
    startup = make_startup(
        tmp_path / "home",
        tmp_path / "work",
        sandbox={"mode": mode},
        permission={"*": "allow"},
        hooks={"PostToolUse": [{"hooks": [hook]}]},
        formatter={"mine": formatter},
    )
    model = RequestRecorder(ScriptedModel(answers))
    # Formatters run in a project that is trusted.
    async with open_in_process(replace(startup, trust=True), SingleModel(model)) as (
        project,
        client,
    ):
        session = await client.call(SESSION_CREATE, CreateSession())
        it = ScriptedProject(project, model, session.id, client)

        async def follow() -> None:
            async for stamped in it.project.store.follow():
                toasts.extend(
                    [stamped.event.properties.message]
                    if isinstance(stamped.event, ToastShown)
                    else []
                )

        following = asyncio.create_task(follow())
        await asyncio.sleep(0)
        yield it, toasts
        following.cancel()


async def start_programs(it: ScriptedProject) -> list[str]:
    """Start extension hosts and language servers, in the sandbox of commands and in their own;
    return the errors.
    """
    workspace, own, errors = it.project.workspace, it.work.parent / "own", list[str]()
    starts = [
        start_host(
            workspace,
            HostKey("python", is_confined),
            workspace.environment,
            own,
            (),
            lambda _: None,
        )
        for is_confined in (True, False)
    ]
    for sandbox in (True, ProgramSandboxConfig(network="off")):
        choice = ServerChoice(
            ServerRow("mine", {".x": "x"}, [["cat"]], sandbox=sandbox), "found", ("/bin/cat",)
        )
        starts.append(start_server(it.project.settings, workspace, choice, it.work, lambda _: None))
    for start in starts:
        try:
            await (await start).close()
        except OSError as error:
            errors.append(str(error))
    return errors


@pytest.mark.parametrize("sandbox", [True, OWN_SANDBOX])
async def test_programs_run_without_a_sandbox_and_the_user_is_told_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: Any
) -> None:
    async with open_bare_project(tmp_path, monkeypatch, "auto", sandbox) as (it, toasts):
        await it.prompt()
        assert await start_programs(it) == []
        await asyncio.sleep(0)
        assert len([toast for toast in toasts if toast.startswith(WARNING)]) == 1
    assert {"hooked", "formatted"} <= {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "work/commanded").exists()


@pytest.mark.parametrize("sandbox", [True, OWN_SANDBOX])
async def test_no_program_runs_without_a_sandbox_that_is_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: Any
) -> None:
    async with open_bare_project(tmp_path, monkeypatch, "required", sandbox) as (it, toasts):
        await it.prompt()
        formatted, commanded = map(read_result, it.calls())
        hooked = next(toast for toast in toasts if "can't be started" in toast)
        refusals = [formatted, commanded, hooked, *await start_programs(it)]
        with pytest.raises(OperationError) as caught:
            await it.client.call(PTY_CREATE, CreatePty(command="/bin/sh"))
        refusals.append(str(caught.value))
        assert len(refusals) == 8
        for refusal in refusals:
            assert NO_SANDBOX in refusal
            assert REQUIRED in refusal
            assert not refusal.endswith("..")
        assert not [toast for toast in toasts if toast.startswith(WARNING)]
    assert {"hooked", "formatted"}.isdisjoint(path.name for path in tmp_path.iterdir())
    assert not (tmp_path / "work/commanded").exists()
