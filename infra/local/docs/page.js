// Shows openapi.yaml in Swagger UI, chooses a key of the demo account and fills in its ids.
// Keys are only in the page's memory: a reload fetches them again.
"use strict";

async function main() {
  const facts = await fetchDemo();
  const hash = await sha256(facts.api_key);
  const ui = SwaggerUIBundle({
    url: "openapi.yaml",
    dom_id: "#reference",
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    persistAuthorization: false,
    queryConfigEnabled: false,
    supportedSubmitMethods: ["get", "post", "delete"],
    syntaxHighlight: { theme: "obsidian" },
    tryItOutEnabled: true,
    validatorUrl: null,
    plugins: [prepared(facts, hash), tidy, operationsFirst],
    onComplete: () => offerKeys(ui, facts),
  });
}

async function fetchDemo() {
  const response = await fetch("demo.json");
  if (!response.ok) throw new Error(`the demo account: ${response.status} ${await response.text()}`);
  return response.json();
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

async function sha256(text) {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

// freshKey is a new Idempotency-Key. If the page is from another machine, without TLS, it
// has no crypto.randomUUID.
const freshKey = () => hex(crypto.getRandomValues(new Uint8Array(16)));

// operationsFirst shows the document's description below the operations.
function operationsFirst({ React: { createElement } }) {
  let description;
  const keep = (original) => (document) => {
    if (document.info?.description) ({ info: { description, ...document.info } } = document);
    return original(document);
  };
  return {
    statePlugins: { spec: { wrapActions: { updateJsonSpec: keep } } },
    wrapComponents: { operations: (Operations, { getComponent }) => (properties) => createElement("div", null,
      createElement(Operations, properties),
      createElement("div", { id: "description", className: "info" }, createElement(getComponent("Markdown", true), { source: description ?? "" }))) },
  };
}

// prepared changes the document before it is shown: the server that this page
// reaches, and the demo account's ids as the examples that fill in the forms.
// If-None-Match stays empty, because no value fits every request.
function prepared(facts, hash) {
  const change = (document) => {
    document.servers = [{ url: new URL("/api/v1", location.href).href }];
    const parameters = document.components.parameters;
    for (const [name, value] of Object.entries({ ...facts.parameters, IdempotencyKey: freshKey() })) parameters[name].example = value;
    const { everything } = document.paths["/byok"].post.requestBody.content["application/json"].examples;
    Object.assign(everything.value, { workspace_id: facts.workspace_id, allowed_api_key_hashes: [hash] });
    return document;
  };
  return { statePlugins: { spec: { wrapActions: { updateJsonSpec: (original) => (document) => original(change(document)) } } } };
}

// tidy clears the previous answer when a new request starts, and gives each new body a
// new Idempotency-Key: the same body twice stores one credential.
function tidy() {
  const before = (original, { specActions }) => (request) => {
    const [path, method] = Array.isArray(request) ? request : [request.path, request.method];
    specActions.clearResponse(path, method);
    return original(request);
  };
  const renew = (original, system) => (change) => {
    const parameters = system.specSelectors.specResolvedSubtree(["paths", ...change.pathMethod, "parameters"]);
    const header = parameters?.find((parameter) => parameter.get("name") === "Idempotency-Key");
    if (header) system.specActions.changeParamByIdentity(change.pathMethod, header, freshKey(), false);
    return original(change);
  };
  return { statePlugins: {
    spec: { wrapActions: { execute: before, validateParams: before } },
    oas3: { wrapActions: { setRequestBodyValue: renew } },
  } };
}

// offerKeys puts a choice of the demo account's keys above the operations.
function offerKeys(ui, facts) {
  const keys = [["Management key: all operations", facts.management_key], ["API key: files only", facts.api_key], ["No key", undefined]];
  const choose = (key) => key ? ui.preauthorizeApiKey("bearer", key) : ui.authActions.logout(["bearer"]);
  const choice = document.createElement("fieldset");
  choice.id = "keys";
  choice.append(Object.assign(document.createElement("legend"), { textContent: "Key of the demo account" }));
  keys.forEach(([name, key], index) => {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "radio", name: "key", checked: index === 0 });
    input.addEventListener("change", () => choose(key));
    label.append(input, ` ${name}`);
    choice.append(label);
  });
  choice.append(Object.assign(document.createElement("p"), {
    textContent: "The forms below are filled in: open an operation and press Execute. A reload offers a file that is still there.",
  }));
  document.querySelector(".scheme-container").prepend(choice);
  document.getElementById("servers").ariaLabel = "Server";
  choose(keys[0][1]);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", colour);
colour();

main().catch((error) => {
  const alert = Object.assign(document.createElement("p"), { role: "alert", textContent: `This page does not work: ${error.message}` });
  document.getElementById("reference").replaceWith(alert);
});
