// Other folders are opened, files are found, read and named in the prompt, and any line is commented on by keyboard.
import assert from "node:assert/strict";
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { audit } from "./axe.mjs";
import { inBrowser, picture, prompt } from "./browser.mjs";

const project = dirname(process.env.CODELOOP_FILE);

await inBrowser(
  async (open, { allow }) => {
    allow(/404 \(Not Found\)/); // of a folder that is not there
    await mkdir(join(project, "lib/deep"), { recursive: true });
    await mkdir(join(dirname(project), "place/inner"), { recursive: true });
    await writeFile(join(project, "lib/deep/long.py"), Array.from({ length: 900 }, (_, line) => `value_${line} = ${line}\n`).join(""));
    await appendFile(process.env.CODELOOP_FILE, "\n\n# mine \u202e\n");
    const page = await open({ size: "wide" });
    await page.waitForSelector(".picker:has-text('coder')");
    await prompt(page, "say one word");
    await page.waitForSelector("text=Certainly.");

    // The tree, a file of it with its changes, and what is found in files.
    await page.keyboard.press("Control+x");
    await page.keyboard.press("e");
    await page.click(".file-entry:has-text('lib')");
    await page.waitForSelector(".file-entry:has-text('deep')");
    await audit(page, "files-tree");
    await page.click(".file-entry:has-text('cart.py') >> nth=0");
    await page.waitForSelector(".file-view .row:has-text('# mine \\\\u202e')"); // what is hidden is shown
    await page.click(".file-view >> text=Changes");
    await page.waitForSelector(".file-view .row.add:has-text('# mine')");
    await page.click(".file-view >> text=Whole file");
    await audit(page, "files-file");
    await page.click(".file-view >> text=@ in the prompt");
    assert.equal(await page.inputValue("#prompt"), "@cart.py ");
    await page.fill("#prompt", "");
    await page.click("[aria-label='Back to the files']");
    await page.fill("[aria-label='Search files']", "value_777 = 777");
    await page.click(".found-line:has-text('lib/deep/long.py:778')");
    await page.waitForSelector(".row.at:has-text('value_777 ')");
    assert.equal(await page.evaluate(() => {
      const [row, box] = [document.querySelector(".row.at"), document.querySelector(".review-body")].map((each) => each.getBoundingClientRect());
      return row.top >= box.top && row.bottom <= box.bottom;
    }), true, "the line that was found is in sight");
    await picture(page, "files-found");

    // A line is commented on by keyboard: the form is below it, and the focus is back afterwards.
    await page.focus(".file-view .rows");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("c");
    await page.waitForSelector(".row:has-text('value_778 ') + .row-note textarea:focus");
    await page.keyboard.type("why this one?");
    await audit(page, "files-comment");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector(".row:has-text('value_778 ') + .row-note .thread:has-text('why this one?')");
    assert.equal(await page.evaluate(() => document.activeElement.classList.contains("rows")), true);
    // By mouse at any other.
    await page.click(".file-view .number[data-number='780']");
    await page.waitForSelector(".row:has-text('value_779 ') + .row-note textarea:focus");
    await page.keyboard.press("Escape");
    await page.click(".review-send button");
    await page.waitForSelector(".user-text:has-text('About @lib/deep/long.py line 779')");
    await page.click("[aria-label='Close the review']");

    // Another folder is opened: by the ones that were used, and by a way through folders.
    await page.click("[aria-label='Open a project or folder']");
    await page.waitForSelector("dialog [role=option]:has-text('place')");
    await audit(page, "open");
    await page.fill("dialog input", join(dirname(project), "pl"));
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog [role=option]:has-text('inner')");
    assert.equal(await page.inputValue("dialog input"), `${join(dirname(project), "place")}/`.replace(process.env.HOME, "~"));
    // Of very many the first are listed, and any is found by how it begins.
    await Promise.all([...Array(1_001).keys(), "zebra"].map((name) => mkdir(join(dirname(project), "place/many", `${name}`), { recursive: true })));
    await page.fill("dialog input", `${join(dirname(project), "place/many")}/`);
    await page.waitForSelector("dialog >> text=There are more");
    await page.keyboard.type("zeb");
    await page.waitForSelector("dialog [role=option]:has-text('zebra')");
    await page.fill("dialog input", "/no/such/folder/");
    await page.waitForSelector("dialog >> text=Folder not found");
    await page.fill("dialog input", `${join(dirname(project), "place")}/`);
    await page.click("dialog button.primary:has-text('/place')");
    await page.waitForSelector(".where:has-text('place')");
    await prompt(page, "say one word");
    await page.waitForSelector(".group[aria-label$='/place'] .session");
    await page.click("[aria-label='Open a project or folder']");
    await page.click("dialog [role=option]:has-text('project') >> nth=0");
    await page.waitForSelector(".where:has-text('project')");
    await page.setViewportSize({ width: 360, height: 740 });
    await page.keyboard.press("Control+x");
    await page.keyboard.press("o");
    await audit(page, "open-phone");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+x");
    await page.keyboard.press("e");
    await page.waitForSelector(".file-entry");
    await audit(page, "files-phone");
  },
  { bypassCSP: true }, // for axe
);
