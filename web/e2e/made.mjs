// Sessions that are made up, as long as wanted: put into the server by its import.

const TEXT = `The total was wrong because **one count** was used for all prices; see \`cart.py\`.

\`\`\`python
def total(prices, counts):
    return sum(price * count for price, count in zip(prices, counts))
\`\`\`

- \`cart.py\` multiplies each price by *its* count now
- the test passes, and [the manual](https://example.com/manual) says so
`;
const OUTPUT = Array.from({ length: 30 }, (_, line) => `test_cart.py::test_${line} PASSED`).join("\n");
const PATCH = ["--- a/cart.py", "+++ b/cart.py", "@@ -1,12 +1,12 @@", ...Array.from({ length: 6 }, (_, line) => [` same ${line}`, `-return sum(prices) * count  # ${line}`, `+return sum(price * count for price, count in pairs)  # ${line}`]).flat()].join("\n");

/** The messages of a session, prompt and answer in turn; every answer has a call, every fifth an edit. */
export function makeMessages(count) {
  const created = 1_700_000_000_000;
  const id = (kind, index) => `${kind}_${String(index).padStart(26, "0")}`;
  return Array.from({ length: count }, (_, index) => {
    const messageID = id("msg", index);
    const common = { id: messageID, sessionID: "ses_x", time: { created: created + index }, agent: "build" };
    const part = (n, more) => ({ id: id(`prt${n}`, index), sessionID: "ses_x", messageID, ...more });
    if (index % 2 === 0) return { info: { ...common, role: "user", model: { providerID: "mine", modelID: "coder" } }, parts: [part(1, { type: "text", text: `message ${index}: the total is wrong` })] };
    const call = (n, tool, input, metadata) => part(n, { type: "tool", tool, callID: `c${n}`, state: { status: "completed", input, output: OUTPUT, title: tool, metadata, time: { start: 1, end: 2 } } });
    const info = { ...common, role: "assistant", parentID: id("msg", index - 1), time: { created: created + index, completed: created + index }, modelID: "coder", providerID: "mine", mode: "build", path: { cwd: "/x", root: "/x" }, cost: 0, tokens: { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }, finish: "stop" };
    const edit = index % 10 === 1 ? [call(3, "edit", { filePath: "cart.py" }, { filediff: { file: "cart.py", patch: PATCH, additions: 6, deletions: 6 } })] : [];
    return { info, parts: [part(1, { type: "text", text: `message ${index}: ${TEXT}`, time: { start: 1, end: 1 } }), call(2, "bash", { command: "python3 test_cart.py" }, { output: OUTPUT, exit: 0 }), ...edit] };
  });
}

/** A patch in which `count` lines are others. */
export function makePatch(count) {
  const lines = (sign, word) => Array.from({ length: count }, (_, line) => `${sign}    value_${line} = compute("${word}", ${line}) + ${line * 7}  # ${word}`);
  return ["--- a/big.py", "+++ b/big.py", `@@ -1,${count} +1,${count} @@`, ...lines("-", "before"), ...lines("+", "after")].join("\n");
}

/** Put a session into the server; the page must be signed in. Returns its id and directory. */
export async function importSession(page, title, messages) {
  await page.waitForFunction(() => localStorage.getItem("codeloop.key"));
  const time = { created: 1_700_000_000_000, updated: 1_700_000_000_000 };
  const info = { id: "ses_x", slug: "x", projectID: "x", directory: "/x", version: "1", title, time };
  return page.evaluate(async (body) => {
    const headers = { "x-codeloop-key": localStorage.getItem("codeloop.key"), "content-type": "application/json" };
    const response = await fetch("/session/import", { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()).session;
  }, { info, messages });
}

/** Go to a session. */
export const show = (page, { id, directory }) => page.evaluate(([dir, session]) => (location.hash = `#${new URLSearchParams({ dir, session })}`), [directory, id]);
