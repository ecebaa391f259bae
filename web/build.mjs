// Builds the files that the package ships: node build.mjs [FOLDER]. The same source gives the same bytes everywhere.
import { build } from "esbuild";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../src/codeloop/web/static"));

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const common = { absWorkingDir: here, outdir: out, bundle: true, minify: true, charset: "utf8", legalComments: "none", target: "es2022" };
await build({ ...common, entryPoints: { app: "src/main.tsx" }, format: "esm", splitting: true, chunkNames: "[name]-[hash]", jsx: "automatic", jsxImportSource: "preact" });
await build({ ...common, entryPoints: { worker: "src/worker.ts" }, format: "iife" });
await build({ ...common, entryPoints: { app: "style/app.css", terminal: "style/terminal.css" } });
await cp(join(here, "public"), out, { recursive: true });
await writeFile(join(out, "licences.txt"), await licences());

/** Returns the licence of every package whose code is in the built files. */
async function licences() {
  const { dependencies } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
  const names = [...Object.keys(dependencies), "@preact/signals-core"].sort();
  const texts = await Promise.all(names.map(licence));
  return `The files of this folder hold code of these packages.\n${texts.join("")}`;
}

async function licence(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).filter((each) => /^licen[cs]e/i.test(each)).sort()[0];
  const text = file ? await readFile(join(folder, file), "utf8") : `Licence: ${license}`;
  return `\n${"=".repeat(78)}\n${name} ${version} (${license})\n\n${text.trim().replaceAll("\r\n", "\n")}\n`;
}
