"""The ways of several plugins to sign in at a provider, in the dialog of providers."""

import os
from pathlib import Path

import pytest

from codeloop.app.app import App
from codeloop.client.directory_client import DirectoryClient
from codeloop.schema.wire import replace
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.providers.provider_picker import ProviderPicker
from tests.support.answers import Answer
from tests.support.javascript_extensions import find_host_command
from tests.support.model_server import ModelServer
from tests.support.scripted_project import make_startup, wait_until
from tests.tui.dialogs.test_models import ACME
from tests.tui.dialogs.test_sessions import WIDE
from tests.tui.stage import Stage, staged

BY_CODE = """
export const ByCode = async () => ({
  auth: {
    provider: "acme",
    methods: [
      {
        type: "oauth",
        label: "Acme for teams",
        prompts: [
          { type: "select", key: "where", message: "Where?", options: [{ value: "here", label: "In the cloud" }] },
          { type: "text", key: "team", message: "Which team?" },
        ],
        authorize: async ({ where, team }) => ({
          url: `https://${where}.example/${team}`,
          instructions: "It takes a minute.",
          method: "code",
          callback: async (code) => (code === "right" ? { type: "success", key: "sk-right" } : { type: "failed" }),
        }),
      },
    ],
  },
})
"""
BY_PAGE = """
import { existsSync } from "node:fs"

export const ByPage = async () => ({
  auth: {
    provider: "acme",
    methods: [
      {
        type: "oauth",
        label: "Acme for one",
        authorize: async () => ({
          url: "https://one.example",
          instructions: "",
          method: "auto",
          callback: async () => {
            while (!existsSync(new URL("go", import.meta.url))) await new Promise((done) => setTimeout(done, 20))
            return { type: "success", key: "sk-right" }
          },
        }),
      },
    ],
  },
})
"""


@pytest.mark.slow
async def test_all_ways_to_sign_in_are_offered_and_each_leads_to_a_model(tmp_path: Path) -> None:
    find_host_command()  # or skip: there is no node
    plugins = tmp_path / "home/config/plugin"
    plugins.mkdir(parents=True)
    (plugins / "a.mjs").write_text(BY_CODE)
    (plugins / "b.mjs").write_text(BY_PAGE)
    (tmp_path / "work").mkdir()
    app = Stage()
    async with ModelServer([Answer(text="ready")] * 2, key="sk-right") as server:
        acme = {"acme": {**ACME["acme"], "options": {"baseURL": server.url}}}
        start = make_startup(tmp_path / "home", tmp_path / "work", provider=acme)
        served = App(replace(start, environment={**start.environment, "PATH": os.environ["PATH"]}))
        client = DirectoryClient(served, tmp_path / "work")
        async with staged(app, WIDE) as pilot:
            for keys, expected in (
                (["enter"], "Where?"),
                (["down", "enter"], "https://one.example"),
            ):
                app.results.clear()
                app.open(ProviderPicker(DialogContext(client, app.colours, app.ask)))
                await app.sees("Often used")
                await pilot.press(*"acme", "ctrl+k")
                await app.sees("How to sign in at Acme?", "Acme for teams", "Acme for one")
                await pilot.press(*keys)
                await app.sees(expected)
                if expected == "Where?":
                    await pilot.press("enter")
                    await app.sees("Which team?")
                    await pilot.press(*"red", "enter")
                    await app.sees(
                        "https://here.example/red", "It takes a minute.", "paste the code"
                    )
                    await pilot.press(*"right", "enter")
                else:
                    (plugins / "go").touch()
                await wait_until(lambda: app.results)
                assert app.results[0].provider_id == "acme"
                assert server.requests[-1].headers["authorization"] == "Bearer sk-right"
    await served.close()
