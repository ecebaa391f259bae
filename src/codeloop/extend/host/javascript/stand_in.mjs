// What `@opencode-ai/plugin` and `@opencode-ai/tool` give to an extension when they are not installed beside it.

import { z } from "./zod.mjs"

export const tool = (definition) => definition
tool.schema = z

export const Tool = {
  /** Define a tool by what `init` returns, a function or the definition itself: see `loading.mjs`. */
  define: (id, init) => ({ id, init: typeof init === "function" ? init : async () => init }),
}
