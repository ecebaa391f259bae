// Builds the files that the package ships: node build.mjs [FOLDER]. The same source gives the same bytes everywhere.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../src/codeloop/web/static"));

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const jsx = { jsx: "automatic", jsxImportSource: "preact" };
const common = { absWorkingDir: here, outdir: out, bundle: true, minify: true, charset: "utf8", legalComments: "none", target: "es2022", external: ["/web/*"] };
const FONTS = ["geist.woff2", "geist-mono.woff2"];
const app = await build({ ...common, ...jsx, entryPoints: { app: "src/main.tsx" }, format: "esm", splitting: true, chunkNames: "[name]-[hash]", metafile: true });
await build({ ...common, entryPoints: { worker: "src/worker.ts" }, format: "iife" });
await build({ ...common, entryPoints: { app: "style/app.css", terminal: "style/terminal.css" } });
await cp(join(here, "public"), out, { recursive: true });
for (const font of FONTS) await cp(join(here, "fonts", font), join(out, font));
await writeFile(join(out, "index.html"), await indexPage());
await writeFile(join(out, "share.html"), await sharedPage());
await writeFile(join(out, "licences.txt"), await licences());

/** Returns the index, which names what the script imports at once, so that the browser asks for all of it together. */
async function indexPage() {
  const [, { imports }] = Object.entries(app.metafile.outputs).find(([path]) => path.endsWith("/app.js"));
  const names = imports.filter((each) => each.kind === "import-statement").map((each) => each.path.split("/").at(-1)).sort();
  const links = names.map((name) => `<link rel="modulepreload" href="/web/${name}" />\n    `).join("");
  return (await readFile(join(here, "public/index.html"), "utf8")).replace('<script type="module"', `${links}<script type="module"`);
}

/** Returns the page that a shared session is put into: its script and style are in it, and its policy allows no others. */
async function sharedPage() {
  const inOne = { ...common, write: false };
  const script = (await build({ ...inOne, ...jsx, entryPoints: ["src/share.tsx"], format: "iife" })).outputFiles[0].text.trim().replaceAll("<!--", "\\x3C!--");
  const style = (await build({ ...inOne, entryPoints: ["style/share.css"] })).outputFiles[0].text.trim();
  if (/<\/script|__SESSION__/i.test(script) || /<\/style/i.test(style)) throw new Error("The script or the style would end its element.");
  const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = ["default-src 'none'", `script-src ${hash(script)}`, `style-src ${hash(style)}`, "img-src data:", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types dompurify"].join("; ");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>A codeloop session</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<noscript>This page shows a session with a script of its own. Allow scripts for it.</noscript>
<script type="application/json" id="session">__SESSION__</script>
<script>${script}</script>
</body>
</html>
`;
}

/** Returns the licence of every package whose code is in the built files. */
async function licences() {
  const { dependencies } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
  const names = [...Object.keys(dependencies), "@preact/signals-core"].sort();
  const texts = await Promise.all(names.map(licence));
  const fonts = await readFile(join(here, "fonts/OFL.txt"), "utf8");
  return `The files of this folder hold code of these packages, and parts of two fonts.\n${texts.join("")}\n${"=".repeat(78)}\nGeist and Geist Mono (OFL-1.1), cut to the Latin letters\n\n${fonts.trim().replaceAll("\r\n", "\n")}\n`;
}

async function licence(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).filter((each) => /^licen[cs]e/i.test(each)).sort()[0];
  const text = file ? await readFile(join(folder, file), "utf8") : `Licence: ${license}`;
  return `\n${"=".repeat(78)}\n${name} ${version} (${license})\n\n${text.trim().replaceAll("\r\n", "\n")}\n`;
}
