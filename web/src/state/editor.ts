// Opening a file in the editor of the machine that this browser runs on, by the address that the editor listens to.
import { keep } from "./kept";

/** Editors by name, with the address that opens a file at a line. */
export const EDITORS: Readonly<Record<string, string>> = {
  "VS Code": "vscode://file{path}:{line}",
  Cursor: "cursor://file{path}:{line}",
  Windsurf: "windsurf://file{path}:{line}",
  VSCodium: "vscodium://file{path}:{line}",
  Zed: "zed://file{path}:{line}",
  "JetBrains IDE": "jetbrains://idea/navigate/reference?path={path}:{line}",
  "Sublime Text": "subl://open?url=file://{path}&line={line}",
  TextMate: "txmt://open?url=file://{path}&line={line}",
  MacVim: "mvim://open?url=file://{path}&line={line}",
  Emacs: "org-protocol://open-source?url=file://{path}&line={line}",
};

/** The name of the editor, "" for none: the page can't know what is installed. */
export const editor = keep<string>("editor", "");

/** The address that opens a file (an absolute path) at a line; "" where no editor is chosen. */
export function editorAddress(path: string, line: number): string {
  const form = EDITORS[editor.value];
  return form ? form.replace("{path}", encodeURI(path).replace(/[?#]/g, encodeURIComponent)).replace("{line}", String(line)) : "";
}
