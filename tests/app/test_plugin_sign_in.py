"""Signing in with a plugin, and requests to a model that it sends."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from codeloop.app.models.open_models import OpenModels
from codeloop.app.models.plugin_sign_in import PluginSignIns, SignInOffer, SignInPlugin
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.chat import Finished, ModelRequest, TextDelta, TextPiece, UserModelMessage
from codeloop.model.credentials.store import Credentials
from codeloop.model.providers import Providers
from codeloop.schema.config import Config
from codeloop.schema.errors import APIError, OperationError
from tests.extend.host.world import host_world
from tests.support.answers import Answer
from tests.support.javascript_extensions import find_host_command
from tests.support.model_server import ModelServer

PLUGIN = """
export const Acme = async ({ client }) => ({
  auth: {
    provider: "acme",
    methods: [
      {
        type: "oauth",
        label: "Acme account",
        prompts: [
          { type: "text", key: "team", message: "Which team?", validate: (team) => (team ? undefined : "name one") },
        ],
        authorize: async ({ team }) => ({
          url: `https://acme.example/${team}`,
          instructions: "Paste the code.",
          method: "code",
          callback: async (code) =>
            code === "right" ? { type: "success", access: "first", refresh: "r", expires: 0 } : { type: "failed" },
        }),
      },
      { type: "api", label: "A key", authorize: async () => ({ type: "success", key: "key-of-acme" }) },
    ],
    async loader(getAuth, provider) {
      return {
        apiKey: "",
        headers: { "x-team": provider.models.coder.name },
        async fetch(url, init) {
          let auth = await getAuth()
          if (auth.expires === 0) {
            await client.auth.set({ path: { id: "acme" }, body: { ...auth, access: "renewed", expires: 1 } })
            auth = await getAuth()
          }
          const headers = { ...init.headers, authorization: `Bearer ${auth.access}` }
          return fetch(url.replace("wrong.invalid", "127.0.0.1"), { ...init, headers })
        },
      }
    },
  },
})
"""


@dataclass(frozen=True, slots=True)
class Acme:
    """A model service behind a plugin. The address in the configuration leads nowhere:
    the plugin sets it right.
    """

    service: ModelServer
    sign_ins: PluginSignIns
    models: OpenModels
    credentials: Credentials
    plugin: SignInPlugin

    async def ask(self) -> tuple[str, Finished]:
        request = ModelRequest(
            system="Be brief.", messages=(UserModelMessage(content=(TextPiece(text="Hello"),)),)
        )
        text, last = "", None
        async for event in self.models.open("acme/coder").stream(request):
            text += event.text if isinstance(event, TextDelta) else ""
            last = event
        assert isinstance(last, Finished)
        return text, last


@asynccontextmanager
async def acme(folder: Path, *answers: Answer) -> AsyncGenerator[Acme]:
    """Yield a plugin that nobody has signed in with yet."""
    credentials = Credentials(folder / "auth.json")
    async with (
        ModelServer(answers or (Answer(text="Hello there", deltas=3),)) as service,
        host_world(folder, *find_host_command(), language="javascript") as world,
    ):
        url = service.url.replace("127.0.0.1", "wrong.invalid")
        row = {"options": {"baseURL": url}, "models": {"coder": {"name": "Coder"}}}
        config = msgspec.convert({"provider": {"acme": row}}, Config)
        providers = Providers(config, Catalog(), credentials, {}, ())
        models = OpenModels(providers)
        extension = world.write("plugin.mjs", PLUGIN)
        offer = msgspec.convert((await world.offer(extension)).auth, SignInOffer)
        plugin = SignInPlugin(offer, world.host, extension)
        sign_ins = PluginSignIns(providers, models)
        sign_ins.set_plugins([plugin])
        yield Acme(service, sign_ins, models, credentials, plugin)


async def test_who_signed_in_has_requests_sent_by_the_plugin_with_the_token_it_renews(
    tmp_path: Path,
) -> None:
    async with acme(tmp_path) as world:
        (method, by_key) = world.sign_ins.list_methods()["acme"]
        assert (method.label, method.type, by_key.type) == ("Acme account", "oauth", "api")
        assert [prompt["message"] for prompt in method.prompts or ()] == ["Which team?"]
        started = await world.sign_ins.start_sign_in("acme", 0, {"team": "red"})
        assert (started.url, started.method) == ("https://acme.example/red", "code")
        await world.sign_ins.finish_sign_in("acme", 0, "right")
        assert world.credentials.find_sign_in("acme") == {
            "type": "oauth",
            "access": "first",
            "refresh": "r",
            "expires": 0,
        }
        text, finished = await world.ask()
        assert (text, finished.error) == ("Hello there", None)
        sent = world.service.requests[0]
        assert sent.headers["authorization"] == "Bearer renewed"
        assert sent.headers["x-team"] == "Coder"


async def test_what_the_service_refuses_is_an_error_of_the_service(tmp_path: Path) -> None:
    async with acme(
        tmp_path, Answer(status=400, body='{"error":{"message":"too many teams"}}')
    ) as world:
        world.credentials.store_sign_in("acme", {"access": "a", "refresh": "r", "expires": 1})
        _, finished = await world.ask()
        assert isinstance(finished.error, APIError)
        assert "too many teams" in finished.error.data.message


async def test_a_key_that_a_method_makes_is_stored_as_one(tmp_path: Path) -> None:
    async with acme(tmp_path) as world:
        assert (await world.sign_ins.start_sign_in("acme", 1, {})).url == ""
        assert world.credentials.list_secrets() == {"key-of-acme"}


async def test_a_sign_in_that_fails_says_why(tmp_path: Path) -> None:
    async with acme(tmp_path) as world:
        with pytest.raises(OperationError, match="name one"):
            await world.sign_ins.start_sign_in("acme", 0, {})
        await world.sign_ins.start_sign_in("acme", 0, {"team": "red"})
        with pytest.raises(OperationError, match="failed"):
            await world.sign_ins.finish_sign_in("acme", 0, "wrong")
        with pytest.raises(OperationError, match="No plugin signs in at other"):
            await world.sign_ins.start_sign_in("other", 0, {})
        with pytest.raises(OperationError, match="has 2 methods"):
            await world.sign_ins.start_sign_in("acme", 2, {})
        assert world.credentials.find_sign_in("acme") is None


OTHER = """
export const Other = async () => ({
  auth: {
    provider: "acme",
    methods: [
      {
        type: "oauth",
        label: "Acme account",
        authorize: async () => ({
          url: "https://other.example",
          instructions: "Wait.",
          method: "auto",
          callback: async () => ({ type: "success", access: "others", refresh: "r", expires: 1 }),
        }),
      },
      { type: "api", label: "Type a key" },
    ],
    loader: async () => ({ apiKey: "of-the-other" }),
  },
})
"""


async def test_all_sign_ins_of_several_plugins_are_offered_and_the_one_that_was_used_counts(
    tmp_path: Path,
) -> None:
    async with (
        acme(tmp_path) as world,
        host_world(_made(tmp_path / "b"), *find_host_command(), language="javascript") as more,
    ):
        extension = more.write("plugin.mjs", OTHER)
        offer = msgspec.convert((await more.offer(extension)).auth, SignInOffer)
        other = SignInPlugin(offer, more.host, msgspec.structs.replace(extension, name="other.mjs"))
        await more.host.load(other.extension)
        for plugins in ([world.plugin, other], [other, world.plugin]):
            world.sign_ins.set_plugins(plugins)
            labels = [method.label for method in world.sign_ins.list_methods()["acme"]]
            assert sorted(labels) == [
                "A key",
                "Acme account (other.mjs)",
                "Acme account (plugin.mjs)",
                "Type a key",
            ]
            number = labels.index("Acme account (other.mjs)")
            assert (
                await world.sign_ins.start_sign_in("acme", number, {})
            ).url == "https://other.example"
            await world.sign_ins.finish_sign_in("acme", number, "")
            assert world.sign_ins.open_model("acme/coder") is not None
            assert (world.credentials.find_sign_in("acme") or {})["plugin"] == "other.mjs"
            number = labels.index("Acme account (plugin.mjs)")
            await world.sign_ins.start_sign_in("acme", number, {"team": "red"})
            await world.sign_ins.finish_sign_in("acme", number, "right")
            await world.ask()
            assert world.service.requests[-1].headers["authorization"] == "Bearer renewed"
            assert (world.credentials.find_sign_in("acme") or {})["plugin"] == "plugin.mjs"
        with pytest.raises(OperationError, match="Enter one yourself"):
            await world.sign_ins.start_sign_in("acme", labels.index("Type a key"), {})


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
