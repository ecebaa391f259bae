// Runs of a weak model end with the truth below the answer, whatever that says.
import { inBrowser, picture, prompt } from "./browser.mjs";

await inBrowser(async (open) => {
  const page = await open();
  await page.waitForSelector("#prompt");

  await prompt(page, "claim without a deed");
  await page.waitForSelector(".side-effect >> text=The answer says that checks pass, and none was run in this turn.");
  await page.waitForSelector(".side-effect >> text=The answer says that something was changed, and no file was changed in this turn.");
  await page.waitForSelector(".closing >> text=no file was changed");
  await picture(page, "claim");

  await prompt(page, "throw my work away");
  await page.waitForSelector(".ask-command");
  await page.click("text=Allow once");
  await page.waitForSelector(".side-effect >> text=/^HEAD moved .*; 1 stash made\\.$/");
  await page.waitForSelector(".side-effect >> text=/Uncommitted work of yours was removed by a command: README, notes\\.txt/");
  await picture(page, "loss");

  await prompt(page, "say that it passes");
  await page.waitForSelector(".ask-command >> text=python3 test_cart.py");
  await page.click("text=Allow once");
  await page.waitForSelector(".side-effect >> text=The answer says that checks pass, and the last one failed.");
  await page.waitForSelector(".closing >> text=/1 file changed .*checks failed/");
  await picture(page, "failed");
});
