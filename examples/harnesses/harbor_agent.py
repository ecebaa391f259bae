"""codeloop as an agent of Harbor, which runs Terminal-Bench and other benchmarks.

harbor run -d terminal-bench@2.0 --agent-import-path harbor_agent:Codeloop -m
anthropic/claude-sonnet-5 --ak wheel=PATH
"""

import json
import os
import shlex
from pathlib import Path
from typing import Any

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.trial.paths import EnvironmentPaths

INSTALL = """
command -v uv > /dev/null || curl -LsSf https://astral.sh/uv/install.sh | sh
export PATH="$HOME/.local/bin:$PATH"
uv tool install --python 3.12 {package}
"""
RUN = """
export PATH="$HOME/.local/bin:$PATH"
logs={logs}
codeloop run --format json --auto --profile yolo {flags} -- {prompt} < /dev/null > $logs/codeloop.jsonl \\
  2> $logs/codeloop.txt
code=$?
codeloop export --format atif -o $logs/trajectory.json
exit $code
"""
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "CODELOOP_CONFIG_CONTENT")
ENDED = {4, 5, 6, 124}
"""Exit codes after which what was done is judged as it stands: a limit, a refusal, the time."""


class Codeloop(BaseInstalledAgent):
    """Installs codeloop into a task's container, runs its instruction,
    and reads what it did and used.

    `--ak wheel=PATH` is the file to install; `--ak max_steps=50`, `--ak max_cost=2` and `--ak
    variant=high` are the flags of `codeloop run`.
    """

    capabilities = AgentCapabilities(atif=True)

    def __init__(self, *args: Any, wheel: str | None = None, **kwargs: Any) -> None:
        flags = {
            name: kwargs.pop(name)
            for name in ("max_steps", "max_cost", "variant")
            if name in kwargs
        }
        super().__init__(*args, **kwargs)
        self._wheel = Path(wheel) if wheel else None
        self._flags = [
            word
            for name, value in flags.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]

    @staticmethod
    def name() -> str:
        return "codeloop"

    def get_version_command(self) -> str | None:
        return 'PATH="$HOME/.local/bin:$PATH" codeloop --version'

    def parse_version(self, stdout: str) -> str:
        return stdout.rsplit(maxsplit=1)[-1]

    async def install(self, environment: BaseEnvironment) -> None:
        # There is no release: the name on the package index is somebody else's,
        # whose program would get the keys.
        if self._wheel is None:
            raise ValueError(
                "Build codeloop in its clone (pip wheel --no-deps .), and name the file: --ak wheel=PATH"
            )
        await self.ensure_system_dependencies(environment, ["curl", "git", "ca_certificates"])
        package = f"/installed-agent/{self._wheel.name}"
        await environment.upload_file(self._wheel, package)
        await self.exec_as_agent(environment, INSTALL.format(package=shlex.quote(package)))

    @with_prompt_template
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        del context  # filled in once the logs are here
        flags = [*self._flags, *(["--model", self.model_name] if self.model_name else [])]
        logs = EnvironmentPaths.for_os(environment.os).agent_dir.as_posix()
        command = RUN.format(flags=shlex.join(flags), prompt=shlex.quote(instruction), logs=logs)
        provider = (self.model_name or "").partition("/")[0].upper().replace("-", "_")
        names = (f"{provider}_API_KEY", *KEYS)
        keys = {name: os.environ[name] for name in names if os.environ.get(name)}
        done = await environment.exec(command=command, env=keys)
        if done.return_code not in {0, *ENDED}:
            raise self._classify_exec_error("codeloop run", done)

    def populate_context_post_run(self, context: AgentContext) -> None:
        trajectory = self.logs_dir / "trajectory.json"
        if not trajectory.exists():
            return
        used = json.loads(trajectory.read_text())["final_metrics"]
        context.n_input_tokens = used["total_prompt_tokens"]
        context.n_cache_tokens = used["total_cached_tokens"]
        context.n_output_tokens = used["total_completion_tokens"]
        context.cost_usd = used["total_cost_usd"]
        context.metadata = {"steps": used["total_steps"]}
