// Uses the reference page in Chromium like a person: it clicks every operation, with
// each offered key. It fails if the page sends anything to another host, breaks its
// Content-Security-Policy, or keeps a key.
import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import axe from "axe-core";
import { chromium } from "playwright-core";

const [executablePath, url, description] = process.argv.slice(2);
const operations = [...readFileSync(description, "utf8").matchAll(/^ +operationId: (\w+)$/gm)].map(([, id]) => id);
// The profile is new, and only this machine's host names have an address.
const browser = await chromium.launch({ executablePath, args: ["--disable-gpu", "--disable-quic", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"] });

const context = await browser.newContext();
const faults = [], sent = [];
context.on("request", (request) => {
  sent.push(request.url());
  if (new URL(request.url()).origin !== new URL(url).origin) faults.push(`a request to ${request.url()}`);
});
context.on("console", (message) => {
  const refused = message.text().startsWith("Failed to load resource") && message.location().url.includes("/api/v1/");
  if (!refused && ["error", "warning"].includes(message.type())) faults.push(message.text());
});
context.on("weberror", (error) => faults.push(String(error.error())));
const page = await context.newPage();

const block = (operation) => page.locator(`.opblock[id$="-${operation}"]`);

// execute clicks an operation's button and reads the status from the page.
async function execute(operation) {
  const form = block(operation);
  if (!(await form.locator(".execute").count())) await form.locator(".opblock-summary-control").click();
  const done = page.waitForResponse((response) => response.url().includes("/api/v1/"));
  await form.locator(".execute").click();
  const status = String((await done).status());
  await form.locator(`.live-responses-table .response .response-col_status:text-is("${status}")`).waitFor();
  return status;
}

await page.goto(url);
await block("deleteFile").waitFor();
const file = () => sent.findLast((address) => address.includes("/files/"));
for (const operation of operations) assert.match(await execute(operation), /^20[01]$/, operation);
const first = file();
const post = block("createByokKey"), answer = post.locator(".live-responses-table .highlight-code");
const id = async () => /"id": "([^"]+)"/.exec(await answer.first().innerText())[1];
const made = await id();
await execute("createByokKey");
assert.equal(await id(), made, "the same form stored a second credential");
await post.locator(".opblock-section-request-body .examples-select-element").selectOption("everything");
assert.equal(await execute("createByokKey"), "201", "the example with every member");
assert.notEqual(await id(), made, "another body had the same Idempotency-Key");

// Now every operation is open, with its answer.
await page.evaluate(axe.source);
for (const colorScheme of ["light", "dark"]) {
  await page.emulateMedia({ colorScheme });
  await page.locator(colorScheme === "dark" ? "html.dark-mode" : "html:not(.dark-mode)").waitFor();
  await page.evaluate(() => Promise.allSettled(document.getAnimations().map(({ finished }) => finished)));
  const found = await page.evaluate(() => axe.run({ runOnly: ["color-contrast", "select-name"] }));
  const faults = found.violations.flatMap(({ nodes }) => nodes).filter(({ target, any }) => any[0].id === "color-contrast" || target[0] === "#servers");
  assert.deepEqual(faults.map(({ target, any }) => `${colorScheme}: ${target} ${any[0].message}`), []);
}

const read = block("getSyncJob"), job = read.locator("input[placeholder=id]");
const good = await job.inputValue();
await job.fill("");
await read.locator(".execute").click();
await read.locator(".live-responses-table").waitFor({ state: "detached" }); // the previous answer is removed
await job.fill(good);
assert.ok((await read.boundingBox()).y < 700, "the operations are not at the top");
const { management_key, api_key } = await page.evaluate(async () => (await fetch("demo.json")).json());
await page.getByRole("radio", { name: "API key" }).check();
assert.equal(await execute("getSyncJob"), "401");
await page.getByRole("radio", { name: "No key" }).check();
assert.equal(await execute("deleteFile"), "401");
await page.locator(".auth-wrapper > .authorize").click();
await page.locator(".dialog-ux input").fill(management_key);
await page.locator(".dialog-ux .auth.authorize").click();
await page.locator(".dialog-ux .btn-done").click();
assert.equal(await execute("getSyncJob"), "200", "with a key typed in");
await page.reload();
await page.getByRole("radio", { name: "API key" }).check();
assert.equal(await execute("deleteFile"), "200");
assert.notEqual(file(), first, "the page still offers a deleted file");
for (const key of [management_key, api_key]) assert.ok(![page.url(), ...sent].some((address) => address.includes(key)), "a key in a URL");
assert.deepEqual(await context.storageState({ indexedDB: true }), { cookies: [], origins: [] });
assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length]), [0, 0]);
assert.deepEqual(faults, []);
await page.reload(); // it updates demo.json
await page.getByRole("radio", { name: "No key" }).waitFor();
await browser.close();
console.log("the reference page works: every operation, with each key");
