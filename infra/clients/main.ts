// Calls every operation with the types that openapi-typescript generates from
// infra/openapi.yaml. A member of an answer compiles only if the document declares it
// for that status. ./run puts api.ts beside it.
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, operations, paths } from "./api";

type Body<O extends keyof operations, S extends number> = operations[O]["responses"] extends
  Record<S, { content: { "application/json": infer B } }> ? B : never;

const demo = JSON.parse(readFileSync(0, "utf8"));
function as(baseUrl: string, key: string) {
  const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
  return client;
}
const client = as(demo.base_url, demo.management_key), standard = as(demo.base_url, demo.api_key);

function expect(status: number, got: Response, typed: boolean) {
  console.log(got.status);
  if (got.status !== status || !typed) {
    console.log(`want ${status}, with its type: ${typed}`);
    process.exitCode = 1;
  }
}

async function main() {
  const id: string = demo.sync_jobs.queued;
  const found = await client.GET("/scim/sync-jobs/{id}", { params: { path: { id } } });
  const read: components["schemas"]["SyncJob"] | undefined = found.data?.data;
  const started: string | null | undefined = read?.started_at;
  expect(200, found.response, read?.status === "queued" && started === null);
  const header = { "If-None-Match": found.response.headers.get("ETag") ?? "" };
  const same = await client.GET("/scim/sync-jobs/{id}", { params: { path: { id }, header } });
  expect(304, same.response, same.data === undefined);
  const refused = await standard.GET("/scim/sync-jobs/{id}", { params: { path: { id } } });
  expect(401, refused.response, (refused.error as Body<"getSyncJob", 401>).error.metadata.reason === "management_key_required");
  const absent = await client.GET("/scim/sync-jobs/{id}", { params: { path: { id: crypto.randomUUID() } } });
  expect(404, absent.response, (absent.error as Body<"getSyncJob", 404>).error.code === 404);

  const body: components["schemas"]["NewByokCredential"] = { key: "sk-example-0123456789abcdefAbCd", provider: "openai" };
  // @ts-expect-error: key is required
  const keyless: components["schemas"]["NewByokCredential"] = { provider: "openai" };
  const made = await client.POST("/byok", { body });
  expect(201, made.response, made.data?.data.label === "sk-...AbCd" && made.data.data.allowed_models === null);
  const wrong = await client.POST("/byok", { body: keyless });
  expect(400, wrong.response, (wrong.error as Body<"createByokKey", 400>).error.metadata.issues[0]?.path === "/key");
  const forbidden = await standard.POST("/byok", { body });
  expect(403, forbidden.response, (forbidden.error as Body<"createByokKey", 403>).error.code === 403);

  const file_id: string = demo.files[demo.workspace_id][1];
  const remove = () => standard.DELETE("/files/{file_id}", { params: { path: { file_id } } });
  const gone = await remove();
  expect(200, gone.response, gone.data?.id === file_id && gone.data.type === "file_deleted");
  let last = await remove();
  expect(404, last.response, (last.error as Body<"deleteFile", 404>).error.metadata.request_id !== "");
  for (let i = 0; i < 20 && last.response.status !== 429; i++) last = await remove();
  expect(429, last.response, (last.error as Body<"deleteFile", 429>).error.code === 429);
}

void main();
