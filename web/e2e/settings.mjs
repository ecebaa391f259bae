// Settings, MCP servers, work trees in the sidebar, searching and watching in terminals.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { audit } from "./axe.mjs";
import { inBrowser, picture, prompt } from "./browser.mjs";

const run = promisify(execFile);
const project = dirname(process.env.CODELOOP_FILE);

const openSettings = async (page) => {
  await page.keyboard.press("Control+x");
  await page.keyboard.press(",");
  await page.waitForSelector("dialog .mcp:has-text('cloud')");
};
const setting = (page, name) => page.locator(`.setting:has-text('${name}') select`).first();

await inBrowser(
  async (open, { browser, allow }) => {
    allow(/favicon\.ico/); // of the page where one signs in
    const page = await open();
    await page.waitForSelector("#prompt");
    await prompt(page, "watch the clock");
    await page.click("text=Allow once");
    await page.waitForSelector("text=It ticks in the background.");

    await page.click("text=Watch its output");
    // By the last digit: on a busy machine the first ticks are above what is seen by now.
    await page.waitForSelector(".xterm-rows >> text=/tick-\\d*3/");
    await page.waitForSelector(".xterm-rows >> text=/tick-\\d*9/");
    await page.click("[aria-label^='Find in the terminal']");
    await page.fill(".terminal-find input", "tick-4");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator(".terminal-find >> text=not there").count(), 0);
    await picture(page, "terminal-find");
    await page.fill(".terminal-find input", "nowhere");
    await page.waitForSelector(".terminal-find >> text=not there");
    await audit(page, "terminal-find-phone");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".terminal-find", { state: "detached" });
    await page.click("[aria-label='New terminal']");
    await page.waitForSelector(".terminals [role=tab]:nth-child(2)[aria-selected=true]");
    await page.waitForSelector(".xterm-rows");
    await page.waitForSelector(".terminal-words", { state: "detached" }); // it says "Connecting…"
    await page.keyboard.type("echo see http://127.0.0.1:9/there\n");
    await page.waitForSelector(".xterm-rows >> text=/see http/");
    await page.click("[aria-label='Hide terminals']");

    await page.click("header >> text=1 in background");
    await page.waitForSelector(".job:has-text('seq 1 500') .job-line:has-text('tick-')");
    await page.click(".job >> text=Output");
    await page.waitForFunction(() => (document.querySelector(".job pre")?.textContent.match(/tick-/g) ?? []).length > 9);
    await audit(page, "jobs");
    await picture(page, "jobs");
    await page.click(".job >> text=Stop");
    await page.waitForSelector("dialog >> text=Nothing runs in the background.");
    await page.waitForSelector("header >> text=1 in background", { state: "detached" });
    await page.keyboard.press("Escape");

    await openSettings(page);
    await setting(page, "Theme").selectOption("dark");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await setting(page, "Theme").selectOption("system");
    await setting(page, "Open files with").selectOption("VS Code");
    await setting(page, "Permission profile").selectOption("ask");
    await page.waitForSelector(".notice:has-text('profile ask holds')");
    await page.locator(".setting:has-text('Model for titles') select").selectOption("");
    await page.waitForSelector(".notice:has-text('Written to your own configuration')");
    await page.waitForSelector(".setting:has-text('Model for titles'):has-text('not set')");

    await page.click(".mcp:has-text('notes') >> text=Connect");
    await page.waitForSelector(".mcp.connected:has-text('notes') >> text=Disconnect");
    await page.click(".mcp:has-text('notes') >> text=Disconnect");
    await page.waitForSelector(".mcp.disabled:has-text('notes')");
    await page.click(".mcp:has-text('cloud') >> text=Connect");
    await page.waitForSelector(".mcp.needs_auth:has-text('cloud')");
    await page.click(".mcp:has-text('cloud') >> text=/^Sign in$/");
    await page.waitForSelector("text=Open the sign-in page");
    await picture(page, "settings-sign-in");
    const [tab] = await Promise.all([browser.waitForEvent("page"), page.click("text=Open the sign-in page")]);
    await page.waitForSelector(".mcp.connected:has-text('cloud')");
    await tab.close();
    await page.click(".origins summary");
    assert.match(await page.textContent(".origins"), /provider[\s\S]*codeloop\.json:/);
    const address = page.url();
    await page.keyboard.press("Escape");
    for (const size of ["desktop", "phone"]) {
      for (const scheme of ["light", "dark"]) {
        const view = await open({ size, scheme, url: address });
        await view.waitForSelector(".closing");
        await openSettings(view);
        await audit(view, `settings-${size}-${scheme}`);
        await view.evaluate(() => document.querySelector(".dialog-inner").scrollTo(0, 9_999));
        await view.click(".origins summary");
        await audit(view, `settings-end-${size}-${scheme}`);
        await view.close();
      }
    }

    await prompt(page, "mend the total");
    // "Always" begins with the file; what is wide takes two presses.
    await page.waitForSelector(".ask >> text=Always allow cart.py");
    await page.click(".ask >> text=Wider");
    await page.click(".ask >> text=Always allow *");
    await page.waitForSelector(".ask >> text=That is broad. Allow it always *");
    await picture(page, "broad");
    await page.click(".ask >> text=Narrower");
    await page.click(".ask >> text=Always allow cart.py");
    await page.waitForSelector(".ask:has-text('Run this command?')");
    await page.click("text=Allow once");
    await page.waitForSelector(".ask", { state: "detached" });
    await page.waitForSelector("text=the test passes");
    await page.click("[aria-label='Review changes']");
    const link = await page.getAttribute(".hunk-actions a:has-text('Open')", "href");
    assert.equal(link, `vscode://file${project}/cart.py:3`);

    await page.click("[aria-label='Close the review']");
    const tree = join(dirname(project), "second");
    await run("git", ["-C", project, "worktree", "add", tree], {});
    await page.goto(new URL(address).origin + `/#${new URLSearchParams({ dir: tree })}`);
    await page.waitForSelector(".where >> text=second");
    await prompt(page, "say one word");
    await page.waitForSelector("text=Certainly.");
    await page.waitForSelector(".has-trees .tree:has-text('second')");
    assert.equal(await page.locator(".has-trees .tree").count(), 2);
    await audit(page, "worktrees");
    await page.setViewportSize({ width: 360, height: 740 });
    await page.click("button[aria-label='Sessions']");
    await page.waitForSelector(".sidebar.open");
    await audit(page, "worktrees-phone");
    assert.match(await readFile(process.env.CODELOOP_FILE, "utf8"), /zip\(prices, counts\)/);
  },
  { bypassCSP: true }, // for axe
);
