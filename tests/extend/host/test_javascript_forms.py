"""The forms in which tools and plugins in JavaScript and TypeScript are written,
without any package beside them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.hooks.hooks import ExtensionRaised
from codeloop.extend.host.host_stream import InvalidCall
from codeloop.schema.wire import JSON
from tests.extend.host.world import HostWorld, host_world
from tests.support.javascript_extensions import find_host_command


def host(folder: Path) -> Any:
    return host_world(folder, *find_host_command(), language="javascript")


async def offered(it: HostWorld, name: str, text: str) -> dict[str, JSON]:
    offer = await it.offer(it.write(name, text))
    return {each.name: each.parameters for each in offer.tools}


ADD = """
import {imported}

export default {{
  description: "Add.",
  args: {{ n: {z}.coerce.number().int().describe("How many"), unit: {z}.enum(["m", "km"]).default("m") }},
  async execute(args) {{
    return `${{args.n + 1}} ${{args.unit}}`
  }},
}}
"""


@pytest.mark.parametrize(
    ("imported", "z"),
    [
        ('{ z } from "zod"', "z"),
        ('z from "zod"', "z"),
        ('* as z from "zod/v4"', "z"),
        ('{ tool } from "@opencode-ai/plugin"', "tool.schema"),
    ],
)
async def test_zod_is_there_without_an_installation(imported: str, z: str, tmp_path: Path) -> None:
    async with host(tmp_path) as it:
        extension = it.write("add.ts", ADD.format(imported=imported, z=z))
        (tool,) = (await it.offer(extension)).tools
        assert tool.parameters == {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "description": "How many"},
                "unit": {"type": "string", "enum": ["m", "km"], "default": "m"},
            },
            "required": ["n"],
        }
        assert (await it.call(extension, "add", {"n": "4"})).output == "5 m"
        with pytest.raises(
            InvalidCall, match="n: expected a number, received what is none; unit: expected one of"
        ):
            await it.call(extension, "add", {"n": "many", "unit": "ell"})


async def test_what_zod_has_and_this_has_not_says_what_to_install(tmp_path: Path) -> None:
    tool = '{ description: "D", args: { n: z.file() }, execute: async () => "" }'
    text = f'import {{ z }} from "zod"\nexport default {tool}\n'
    async with host(tmp_path) as it:
        with pytest.raises(
            ExtensionRaised,
            match=r"z has no `file` without the package zod\. Run `npm install zod`",
        ):
            await it.offer(it.write("made.ts", text))


SCHEMAS = """
import { z } from "zod"
const Point = z.object({ x: z.number(), y: z.number() })
const A = z.object({ k: z.literal("a") })
const checks: Record<string, [any, any]> = {
  extended: [Point.extend({ name: z.string() }), { x: 1, y: 2, name: "a", more: 3 }],
  partial: [Point.partial(), { x: 1 }],
  strict: [Point.strict(), { x: 1, y: 2, more: 3 }],
  loose: [Point.passthrough(), { x: 1, y: 2, more: 3 }],
  record: [z.record(z.string(), z.number()), { a: "1" }],
  tuple: [z.tuple([z.string(), z.boolean()]), ["a", true]],
  union: [z.discriminatedUnion("k", [A, z.object({ k: z.literal("b"), n: z.number() })]), { k: "b", n: 1 }],
  transformed: [z.string().trim().transform((text) => text.length), " abc "],
  refined: [z.string().refine((text) => text.length > 3, { message: "is short" }), "abc"],
  caught: [z.number().catch(7), "x"],
  nested: [z.object({ all: z.array(Point) }), { all: [{ x: 1, y: "2" }, { x: 1 }] }],
  date: [z.coerce.date().transform((date) => date.getUTCFullYear()), "2026-01-02"],
}
export default {
  description: "D",
  args: {},
  async execute() {
    const made = Object.entries(checks).map(([name, [schema, value]]) => {
      const outcome = schema.safeParse(value)
      return [name, outcome.success ? outcome.data : outcome.error.message]
    })
    return JSON.stringify(Object.fromEntries(made))
  },
}
"""


async def test_schemas_check_and_convert_as_those_of_zod_do(tmp_path: Path) -> None:
    async with host(tmp_path) as it:
        extension = it.write("schemas.ts", SCHEMAS)
        await it.offer(extension)
        assert json.loads((await it.call(extension, "schemas")).output) == {
            "extended": {"x": 1, "y": 2, "name": "a"},
            "partial": {"x": 1},
            "strict": "has unknown keys: more",
            "loose": {"x": 1, "y": 2, "more": 3},
            "record": "a: expected a number, received string",
            "tuple": ["a", True],
            "union": {"k": "b", "n": 1},
            "transformed": 3,
            "refined": "is short",
            "caught": 7,
            "nested": "all.0.y: expected a number, received string; all.1.y: expected a number, received nothing",
            "date": 2026,
        }


ONE = '{ description: "D", args: {}, execute: async () => "ran" }'


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"export default {ONE}", ["made"]),
        (f"export const tool = {ONE}", ["made"]),
        (
            f"export const one = {ONE}\nexport const two = {ONE}\nexport const limit = 3",
            ["made_one", "made_two"],
        ),
        (
            f'export const tool = {{ "jira-create": {ONE}, jira_list: {ONE} }}',
            ["jira-create", "jira_list"],
        ),
        (f"export default {{ first: {ONE} }}", ["first"]),
        (
            f'import {{ Tool }} from "@opencode-ai/tool"\nexport default Tool.define("own-name", {ONE})',
            ["own-name"],
        ),
    ],
)
async def test_tools_are_exported_in_these_forms(
    text: str, names: list[str], tmp_path: Path
) -> None:
    async with host(tmp_path) as it:
        extension = it.write("made.ts", text)
        assert [each.name for each in (await it.offer(extension)).tools] == names
        assert (await it.call(extension, names[0])).output == "ran"


async def test_a_plugin_may_export_its_tools_and_change_definitions_by_the_hook_tool(
    tmp_path: Path,
) -> None:
    table = f'export const tool = {{ "jira-create": {ONE} }}\n'
    hook = (
        "export const Changes = async () => ({\n"
        "  async tool(def, ctx) {\n"
        "    return { ...def, description: `${def.name} for ${ctx.agent}: ${def.description}` }\n"
        "  },\n"
        "})\n"
    )
    async with host(tmp_path) as it:
        only_tools = it.write("plugin_tools.ts", table)
        assert [each.name for each in (await it.offer(only_tools)).tools] == ["jira-create"]
        assert (await it.call(only_tools, "jira-create")).output == "ran"
        both = it.write("plugin_both.ts", table + hook)
        offer = await it.offer(both)
        assert ([each.name for each in offer.tools], [each.name for each in offer.hooks]) == (
            ["jira-create"],
            ["tool.definition"],
        )
        output = {"description": "Read.", "parameters": {"type": "object"}}
        answer = await it.hook(both, "tool.definition", {"toolID": "read", "agent": "plan"}, output)
        assert answer == {"description": "read for plan: Read.", "parameters": {"type": "object"}}


DEFINED = """
import { Tool } from "@opencode-ai/tool"
import { z } from "zod"

export const Notes = Tool.define("notes", async ({ agent }) => ({
  description: agent?.name === "plan" ? "Plan notes." : "Write notes.",
  parameters: z.object({ n: z.number() }),
  formatValidationError: (error) => `Give numbers: ${error.issues.map((issue) => issue.path.join(".")).join(", ")}`,
  async execute(args, ctx) {
    return { title: "T", output: `${args.n} of ${ctx.agent}, ${JSON.stringify(ctx.messages)}`, metadata: ctx.extra }
  },
}))
"""


async def test_a_tool_is_described_to_each_agent_words_its_errors_and_reads_the_messages(
    tmp_path: Path,
) -> None:
    async with host(tmp_path) as it:
        extension = it.write("notes.ts", DEFINED)
        offer = await it.offer(extension)
        assert [(each.name, each.description) for each in offer.tools] == [
            ("notes", "Write notes.")
        ]
        output = {"description": "Write notes.", "parameters": offer.tools[0].parameters}
        for agent, description in (("plan", "Plan notes."), ("build", "Write notes.")):
            answer = await it.hook(
                extension, "tool.definition", {"toolID": "notes", "agent": agent}, output
            )
            assert (answer["description"], answer["parameters"]["required"]) == (description, ["n"])
        with pytest.raises(InvalidCall, match=r"^Give numbers: n$"):
            await it.call(extension, "notes", {"n": "x"})
        answer = await it.call(extension, "notes", {"n": 2})
        assert answer.output == '2 of build, {"answered":"session.messages"}'
        assert [(each.operation, each.path) for each in it.asked] == [
            ("session.messages", {"id": "ses_1"})
        ]
