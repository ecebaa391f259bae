// Settings, MCP servers, work trees in the sidebar, searching and watching in terminals.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { audit } from "./axe.mjs";
import { inBrowser, picture, prompt } from "./browser.mjs";

const run = promisify(execFile);
const project = dirname(process.env.CODELOOP_FILE);
const ownFile = join(process.env.HOME, "codeloop/config/codeloop.json");

const openSettings = async (page) => {
  await page.keyboard.press("Control+x");
  await page.keyboard.press(",");
  await page.waitForSelector("dialog .sheet-sections");
};
const section = async (page, name) => {
  await page.click(`.sheet-sections button:has-text('${name}')`);
  await page.waitForSelector(`.settings[aria-label='${name}'] > h3 + *`);
};
const setting = (page, name) => page.locator(`.setting:has-text('${name}') select`).first();

await inBrowser(
  async (open, { browser, allow }) => {
    allow(/favicon\.ico/); // of the page where one signs in
    allow(/400 \(Bad Request\)/); // of a change that is refused
    const page = await open();
    await page.waitForSelector("#prompt");
    await prompt(page, "watch the clock");
    await page.click("text=Allow once");
    await page.waitForSelector("text=It ticks in the background.");

    // How much a model thinks is a choice where it has one, and goes with the prompt.
    await page.click(".picker[title='Switch model']");
    await page.fill("dialog input", "thinker");
    await page.keyboard.press("Enter");
    await page.click(".picker:has-text('default effort')");
    await page.fill("dialog input", "deep");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".picker:has-text('deep')");
    const [sent] = await Promise.all([page.waitForRequest(/prompt_async/), prompt(page, "say one word")]);
    assert.deepEqual([sent.postDataJSON().model.modelID, sent.postDataJSON().variant], ["thinker", "deep"]);
    await page.waitForSelector("text=Certainly.");
    await page.reload();
    await page.waitForSelector(".picker:has-text('deep')");
    await page.click(".picker[title='Switch model']");
    await page.fill("dialog input", "coder");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".picker:has-text('deep')", { state: "detached" });

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
    await setting(page, "Colours").selectOption("contrast");
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).color), "rgb(0, 0, 0)");
    await setting(page, "Colours").selectOption("paper");
    await setting(page, "Size of the letters").selectOption("1.1");
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).fontSize), "16.5px");
    await setting(page, "Size of the letters").selectOption("1");
    await setting(page, "Letters").selectOption("system");
    assert.doesNotMatch(await page.evaluate(() => getComputedStyle(document.body).fontFamily), /Geist/);
    await setting(page, "Letters").selectOption("own");
    await page.locator(".setting:has-text('Details of calls') [role=switch]").check();
    await page.waitForSelector(".tool:has-text('seq 1 500') .tool-body", { state: "attached" });
    await page.locator(".setting:has-text('Details of calls') [role=switch]").uncheck();
    await setting(page, "Open files with").selectOption("VS Code");
    await section(page, "Permissions");
    await setting(page, "Profile of this session").selectOption("ask");
    await page.waitForSelector(".notice:has-text('profile ask holds')");
    await section(page, "Models");
    await page.locator(".setting:has-text('Model for titles') select").selectOption("");
    await page.waitForSelector(".notice:has-text('Written to your own configuration')");
    await page.waitForSelector(".setting:has-text('Model for titles'):has-text('not set')");

    // A key for another provider is stored, and removed again.
    await page.fill("[aria-label='Search providers']", "mistral");
    await page.click("[aria-label='Sign in at Mistral']");
    await page.fill(".provider-sign-in [type=password]", "sk-made-up-for-a-test");
    await audit(page, "settings-provider");
    await page.click("text=Store the key");
    await page.waitForSelector(".provider:has-text('Mistral'):has-text('key stored here')");
    await page.click("[aria-label='Remove the key of Mistral']");
    await page.waitForSelector(".provider:has-text('Mistral'):has-text('key stored here')", { state: "detached" });

    // Servers are added, changed and removed; others of the file stay.
    await section(page, "MCP servers");
    await page.click("text=Add a server");
    await page.fill("[aria-label='Name of the server']", "own");
    await page.fill("[aria-label='Address or command']", "no-such-program --flag 'two words'");
    await page.fill("[aria-label='Variables']", "LEVEL=1");
    await audit(page, "settings-mcp-form");
    await page.click(".mcp-form >> text=Save");
    await page.waitForSelector(".mcp:has-text('own')");
    const held = async () => JSON.parse(await readFile(ownFile, "utf8")).mcp;
    assert.deepEqual((await held()).own, { type: "local", command: ["no-such-program", "--flag", "two words"], environment: { LEVEL: "1" } });
    await page.click("[aria-label='Edit own']");
    const target = page.locator("[aria-label='Address or command']");
    assert.equal(await target.inputValue(), "", "a command is written whole or not at all");
    assert.match(await target.getAttribute("placeholder"), /As it is: no-such-program …/);
    await page.fill("[aria-label='Variables']", "MORE=2");
    await page.click(".mcp-form >> text=Save");
    await page.waitForSelector(".mcp-form", { state: "detached" });
    assert.deepEqual((await held()).own, { type: "local", command: ["no-such-program", "--flag", "two words"], environment: { LEVEL: "1", MORE: "2" } });
    await page.click("[aria-label='Edit own']");
    await target.fill("http://127.0.0.1:9/mcp");
    await page.fill("[aria-label='Headers']", "X-Level: 2");
    // One change, so that one that is refused leaves what was there.
    const changes = [];
    page.on("request", (request) => void (request.method() === "PATCH" && changes.push(request.postDataJSON().mcp.own)));
    await page.click(".mcp-form >> text=Save");
    await page.waitForSelector(".mcp-form", { state: "detached" });
    assert.deepEqual(changes, [{ type: "remote", url: "http://127.0.0.1:9/mcp", command: null, environment: null, cwd: null, headers: { "X-Level": "2" } }]);
    assert.deepEqual((await held()).own, { type: "remote", url: "http://127.0.0.1:9/mcp", headers: { "X-Level": "2" } });
    await page.click("[aria-label='Remove own']");
    await page.waitForSelector(".mcp:has-text('own')", { state: "detached" });
    assert.deepEqual(Object.keys(await held()).sort(), ["cloud", "notes"]);

    // One in the form of another program, and one of the project, are changed where they stand.
    const theirs = { docs: { command: "no-such-program", args: ["--flag"] } };
    await writeFile(ownFile, JSON.stringify({ ...JSON.parse(await readFile(ownFile, "utf8")), mcpServers: theirs }));
    await writeFile(join(project, "codeloop.json"), JSON.stringify({ mcp: { shared: { type: "local", command: ["no-such-program"] } } }));
    await run(process.env.CODELOOP_PROGRAM, ["trust", project]);
    await page.keyboard.press("Escape");
    await openSettings(page);
    await section(page, "MCP servers");
    await page.click("[aria-label='Edit docs']");
    await page.fill("[aria-label='Variables']", "LEVEL=1");
    await page.click(".mcp-form >> text=Save");
    await page.waitForSelector(".notice:has-text('docs is in the form of other programs')");
    await page.click(".mcp-form >> text=Cancel");
    assert.deepEqual(JSON.parse(await readFile(ownFile, "utf8")).mcpServers, theirs);
    assert.equal((await held()).docs, undefined);
    await page.waitForSelector(".mcp:has-text('shared'):has-text('Change it in'):has-text('codeloop.json')");
    assert.equal(await page.locator("[aria-label='Edit shared'], [aria-label='Remove shared']").count(), 0);
    await rm(join(project, "codeloop.json"));

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
    await section(page, "Files");
    assert.match(await page.textContent(".origins"), /provider[\s\S]*codeloop\.json:/);
    const address = page.url();
    await page.keyboard.press("Escape");
    for (const size of ["desktop", "phone"]) {
      for (const scheme of ["light", "dark"]) {
        const view = await open({ size, scheme, url: address });
        await view.waitForSelector(".closing");
        await openSettings(view);
        for (const name of ["Appearance", "Notifications", "Models", "Agents", "Permissions", "MCP servers", "Keys", "Files"]) {
          await section(view, name);
          await audit(view, `settings-${name}-${size}-${scheme}`);
        }
        await view.close();
      }
    }

    await prompt(page, "mend the total");
    // "Always" begins with the file; what is wide takes two presses.
    await page.waitForSelector(".ask >> text=Always allow cart.py");
    await page.click(".ask >> text=Wider");
    await page.click(".ask >> text=Always allow *");
    await page.waitForSelector(".ask-wider:has-text('*')");
    await picture(page, "broad");
    await page.click(".ask >> text=Back");
    await page.click(".ask >> text=Narrower");
    await page.click(".ask >> text=Always allow cart.py");
    await page.waitForSelector(".ask:has-text('Run this command?')");
    await page.click("text=Allow once");
    await page.waitForSelector(".ask", { state: "detached" });
    await page.waitForSelector("text=the test passes");
    // What was allowed for always is listed, and asked again once it is taken back.
    await openSettings(page);
    await section(page, "Permissions");
    await page.click(".grant:has-text('edit cart.py') >> text=Ask again");
    await page.waitForSelector(".grant", { state: "detached" });
    await page.keyboard.press("Escape");
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
