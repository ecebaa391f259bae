// How long the page's main thread is busy, from Chromium's own trace: a task's processor time, which other programs don't change.

const CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"].join(",");

/** Trace a page while `work` runs. Returns its tasks' processor times in ms, longest first, and what the trace holds. */
export async function trace(page, work) {
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await session.send("Tracing.start", { categories: CATEGORIES, transferMode: "ReportEvents" });
  await work();
  const isComplete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await isComplete;
  await session.detach();
  const mains = new Set(events.filter((event) => event.name === "thread_name" && event.args.name === "CrRendererMain").map((event) => `${event.pid} ${event.tid}`));
  const tasks = events.filter((event) => event.ph === "X" && /RunTask$/.test(event.name) && mains.has(`${event.pid} ${event.tid}`));
  const worst = tasks.map((event) => ({ ms: (event.tdur ?? event.dur) / 1000, event })).sort((a, b) => b.ms - a.ms);
  return { worst, events };
}

/** What went on within a task: names of events with their times in ms, longest first. */
export function explain({ event }, events) {
  const inner = events.filter((each) => each.pid === event.pid && each.tid === event.tid && each.ph === "X" && each !== event && each.ts >= event.ts && each.ts + each.dur <= event.ts + event.dur);
  const sums = new Map();
  for (const each of inner) sums.set(each.name, (sums.get(each.name) ?? 0) + (each.tdur ?? each.dur) / 1000);
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([name, ms]) => `${name} ${ms.toFixed(1)}`);
}
