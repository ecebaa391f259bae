"""A provider that somebody signed in at with a plugin: listed, used where none is chosen,
and asked through it.
"""

import json
import os
from pathlib import Path

from codeloop.model.credentials.store import Credentials
from tests.cli.program import Desk, serving
from tests.support.answers import Answer
from tests.support.javascript_extensions import find_host_command

PLUGIN = """
export const Acme = async () => ({
  auth: {
    provider: "acme",
    methods: [{ type: "oauth", label: "Acme account", authorize: async () => ({}) }],
    async loader(getAuth) {
      return { apiKey: (await getAuth()).access, baseURL: SERVICE }
    },
  },
})
"""


def test_models_of_a_provider_that_a_plugin_signs_in_at_can_be_used(tmp_path: Path) -> None:
    program = Path(find_host_command()[0]).parent
    desk = Desk(tmp_path, {"PATH": f"{program}:{os.environ['PATH']}"})
    with serving([Answer(text="From acme.")]) as server:
        models = {"coder": {"limit": {"context": 100_000, "output": 4_000}, "tool_call": True}}
        desk.configure(provider={"acme": {"npm": "@ai-sdk/openai-compatible", "models": models}})
        plugin = desk.home / "config" / "plugin" / "acme.mjs"
        plugin.parent.mkdir()
        plugin.write_text(PLUGIN.replace("SERVICE", json.dumps(server.url)))
        nobody = desk.run("run", "hello")
        assert nobody.returncode != 0
        assert "acme/coder" not in desk.run("models").stdout
        path = Path(json.loads(desk.run("debug", "paths", "--json").stdout)["credentials"])
        Credentials(path).store_sign_in(
            "acme", {"access": "token-of-acme", "refresh": "r", "expires": 0}
        )
        done = desk.run("run", "hello")
        assert (done.returncode, done.stdout.strip()) == (0, "From acme."), done.stderr
        assert server.requests[-1].headers["authorization"] == "Bearer token-of-acme"
        (row,) = json.loads(desk.run("models", "--json").stdout)
        assert (row["ref"], row["default"]) == ("acme/coder", True)
        assert "signed in" in desk.run("auth", "list").stdout
        plugin.unlink()
        assert "acme/coder" not in desk.run("models").stdout
        assert desk.run("run", "hello").returncode != 0
