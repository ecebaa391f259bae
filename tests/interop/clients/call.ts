// Both generated clients for TypeScript make one call each that writes, and one that is refused.
import createClient from "openapi-fetch";
import * as sdk from "./hey";
import { client } from "./hey/client.gen";
import type { paths } from "./document";

declare const process: { env: Record<string, string>; exit(code: number): never };
const { BASE_URL: baseUrl, PASSWORD: password } = process.env;
const headers = { Authorization: `Bearer ${password}` };

function check(name: string, is: boolean): void {
  console.log(`${is ? "ok" : "FAILED"} ${name}`);
  if (!is) process.exit(1);
}

async function main(): Promise<void> {
  const typed = createClient<paths>({ baseUrl, headers });
  const made = await typed.POST("/session", { body: { title: "From types" } });
  check("openapi-typescript: session.create", made.data?.title === "From types");
  const sessionID = made.data?.id ?? "";
  const said = await typed.POST("/session/{sessionID}/message", {
    params: { path: { sessionID } },
    body: { parts: [{ type: "text", text: "say hello" }] },
  });
  check("openapi-typescript: session.prompt", said.data?.parts.some((part) => part.type === "text" && part.text === "Hello.") === true);
  client.setConfig({ baseUrl, headers });
  const read = await sdk.sessionGet({ path: { sessionID } });
  check("openapi-ts: session.get", read.data?.id === sessionID);
  const lost = await sdk.sessionGet({ path: { sessionID: "ses_none" } });
  check("openapi-ts: a refusal", lost.response?.status === 404 && lost.data === undefined);
}

void main();
