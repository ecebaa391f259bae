// Two pages and the terminal UI on one session at once: whoever does something, all show it, and nobody waits for another.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { inBrowser, link, picture, prompt } from "./browser.mjs";

const run = promisify(execFile);
const socket = `codeloop-agree-${process.pid}`;
const tmux = async (...words) => (await run("tmux", ["-L", socket, ...words])).stdout;
const press = (...keys) => tmux("send-keys", ...keys);

/** Wait until the terminal shows all of these. */
async function terminalShows(...texts) {
  let screen = "";
  for (const end = Date.now() + 120_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 50))) {
    screen = await tmux("capture-pane", "-p");
    if (texts.every((text) => screen.includes(text))) return;
  }
  assert.fail(`the terminal never showed ${texts}:\n${screen}`);
}

await inBrowser(async (open) => {
  const first = await open();
  await first.waitForSelector("#prompt");
  await prompt(first, "mend the total");
  await first.waitForSelector(".ask");
  const second = await open({ url: first.url() });
  const both = (work) => Promise.all([first, second].map(work));
  try {
    await run("tmux", ["-L", socket, "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-c", dirname(process.env.CODELOOP_FILE), process.env.CODELOOP_PROGRAM, "attach", new URL(link).origin, "--continue"]);
    await terminalShows("python3 test_cart.py", "waits for you", "esc esc reject");
    await second.waitForSelector(".ask");
    await press("y");
    await both((page) => page.waitForSelector(".ask", { state: "detached" }));
    await both((page) => page.waitForSelector(".answer strong:has-text('one count')"));
    await terminalShows("the test passes", "4 steps");

    await press("-l", "ask me");
    await press("Enter");
    await both((page) => page.waitForSelector(".question"));
    await second.click("text=Half up");
    await second.click("button:has-text('Answer')");
    await both((page) => page.waitForSelector("strong:has-text('half up')"));
    await terminalShows("Then it is rounded half up.");
    assert.equal(await first.locator(".ask").count(), 0);

    await prompt(first, "say one word");
    await second.waitForSelector("text=Certainly.");
    await terminalShows("say one word", "Certainly.");
    await second.waitForSelector("#prompt[placeholder^='What should']");
    await second.keyboard.press("Control+x");
    await second.keyboard.press("u");
    await second.click("dialog button.primary");
    await both((page) => page.waitForSelector(".undone"));
    await terminalShows("Undone from here on");
    await press("C-x");
    await press("r");
    await both((page) => page.waitForSelector(".undone", { state: "detached" }));

    await prompt(second, "tell a long story");
    await first.waitForSelector("text=word-4");
    await terminalShows("word-4");
    await picture(first, "agree");
    await press("Escape", "Escape"); // by one program: two may start too far apart
    await both((page) => page.waitForSelector("text=You stopped this turn."));
    await both((page) => page.waitForSelector("#prompt[placeholder^='What should']"));
    const shown = [];
    for (const page of [first, second]) {
      await page.bringToFront(); // Chromium draws no other page
      await page.setViewportSize({ width: 1280, height: 4_000 }); // so that no message is left out
      await page.waitForFunction(() => /^mend the total[\s\S]*You stopped this turn\.$/.test(document.querySelector(".transcript").innerText));
      shown.push(await page.locator(".transcript").innerText());
    }
    assert.equal(shown[0], shown[1]);
    assert.match(shown[0], /^mend the total[\s\S]*You stopped this turn.$/);
    assert.equal(await first.locator(".session").count(), 1);
  } finally {
    await run("tmux", ["-L", socket, "kill-server"]).catch(() => undefined);
  }
});
