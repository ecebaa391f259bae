// Ten thousand messages: what is on the screen costs the same as in a short session, and the scroll bar reaches the first.
import assert from "node:assert/strict";
import { inBrowser, picture } from "./browser.mjs";

const COUNT = Number(process.env.CODELOOP_MESSAGES ?? 10_000);

await inBrowser(async (open) => {
  const page = await open();
  await page.waitForFunction(() => localStorage.getItem("codeloop.key"));
  const { id, directory } = await page.evaluate(async (count) => {
    const created = 1_700_000_000_000;
    const messages = Array.from({ length: count }, (_, index) => {
      const isUser = index % 2 === 0;
      const messageID = `msg_${String(index).padStart(26, "0")}`;
      const time = { created: created + index };
      const common = { id: messageID, sessionID: "ses_x" };
      const user = { ...common, role: "user", time, agent: "build", model: { providerID: "mine", modelID: "coder" } };
      const answer = { ...common, role: "assistant", parentID: `msg_${String(index - 1).padStart(26, "0")}`, time: { ...time, completed: created + index }, modelID: "coder", providerID: "mine", mode: "build", agent: "build", path: { cwd: "/x", root: "/x" }, cost: 0, tokens: { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }, finish: "stop" };
      return { info: isUser ? user : answer, parts: [{ id: `prt_${String(index).padStart(26, "0")}`, sessionID: "ses_x", messageID, type: "text", text: `message ${index}: some **words** and \`code\` of it`, time: { start: 1, end: 1 } }] };
    });
    const info = { id: "ses_x", slug: "x", projectID: "x", directory: "/x", version: "1", title: "A long one", time: { created, updated: created } };
    const headers = { "x-codeloop-key": localStorage.getItem("codeloop.key"), "content-type": "application/json" };
    const response = await fetch("/session/import", { method: "POST", headers, body: JSON.stringify({ info, messages }) });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()).session;
  }, COUNT);
  await page.evaluate(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => Math.round(entry.duration)))).observe({ type: "longtask" });
  });
  await page.evaluate(([dir, session]) => (location.hash = `#${new URLSearchParams({ dir, session })}`), [directory, id]);
  await page.waitForSelector(`text=message ${COUNT - 1}:`);
  for (let tries = 0; tries < 600; tries++) {
    await page.evaluate(() => (document.querySelector(".transcript").scrollTop = 0));
    await page.waitForTimeout(80);
    if ((await page.locator("text=message 0:").count()) > 0) break;
  }
  await page.waitForSelector("text=message 0:");
  const rows = await page.locator(".virtual-row").count();
  assert.ok(rows < 60, `${rows} rows of ${COUNT} are in the page`);
  await picture(page, "long");
  const frames = await page.evaluate(async () => {
    const box = document.querySelector(".transcript");
    const times = [];
    let before = performance.now();
    for (let n = 0; n < 120; n++) {
      box.scrollTop += 400;
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - before);
      before = performance.now();
    }
    return times.sort((a, b) => a - b);
  });
  const worst = await page.evaluate(() => Math.max(0, ...window.tasks));
  console.log(JSON.stringify({ rows, worstTaskMs: worst, medianFrameMs: Math.round(frames[60]), p95FrameMs: Math.round(frames[114]) }));
});
