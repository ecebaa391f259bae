"""Extensions in TypeScript for tests, and the command that runs them."""

import os
from pathlib import Path

import pytest

from codeloop.extend.host.javascript.runtime import NoRuntime, check_runtime
from tests.support.host_contract import Extensions

TOOL_SOURCE = """
import { Plugin, tool } from "@opencode-ai/plugin"
import { count } from "./lib/count"

enum Word { Hello = "hello" }

export const greet = tool({
  description: "Greet somebody.",
  args: {
    name: tool.schema.string().describe("Whom to greet"),
    times: tool.schema.number().int().default(1),
  },
  async execute(args, ctx) {
    ctx.metadata({ title: "greeting" })
    await ctx.ask({ permission: "greet", patterns: [args.name], always: ["*"], metadata: {} })
    return `${Word.Hello} ${args.name} x${count(args.times)} in ${ctx.directory}`
  },
})

export const waits = tool({
  description: "Never end.",
  args: {},
  execute: async (): Promise<string> => new Promise(() => {}),
})

export const structured = tool({
  description: "Give more than text.",
  args: {},
  async execute() {
    console.log('{"type":"result","id":1,"value":"noise"}')
    return { title: "T", output: "O", metadata: { x: 1 } }
  },
})

export const fails = tool({
  description: "Fail.",
  args: {},
  async execute() {
    throw new Error("broken")
  },
})

export const long = tool({ description: "Say much.", args: {}, execute: async () => "x".repeat(60_000_000) })

export type Unused = Plugin
"""

PLUGIN_SOURCE = """
import type { Plugin } from "@opencode-ai/plugin"

export const Guard: Plugin = async ({ client }) => ({
  event: async ({ event }) => {},
  "tool.execute.before": async (input, output) => {
    if (input.tool === "bad") throw new Error("not this one")
    output.args.seen = (await client.session.list()).data
  },
  tool: {
    look: {
      description: "Look at a session.",
      args: {},
      execute: async () => JSON.stringify((await client.session.get({ path: { id: "ses_1" } })).data),
    },
  },
})
"""


def write_extensions(folder: Path) -> Extensions:
    """Write the two extensions of `host_contract` into a folder."""
    tools, plugin = folder / "tool" / "say.ts", folder / "plugin" / "guard.ts"
    library = folder / "tool" / "lib" / "count.ts"
    for path, text in (
        (tools, TOOL_SOURCE),
        (plugin, PLUGIN_SOURCE),
        (library, "export const count = (n: number): string => String(n)\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Extensions(tools, plugin, "say_")


def find_host_command() -> tuple[str, ...]:
    """Return the command of the host; without a runtime, the test is skipped with the reason."""
    try:
        return check_runtime(os.environ.get("PATH"))
    except NoRuntime as error:
        pytest.skip(str(error))
