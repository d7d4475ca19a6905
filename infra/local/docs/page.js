// Shows openapi.yaml in Swagger UI. Where the page comes with a demo account, one of
// its keys is chosen and its ids are filled in. Keys are kept in this page's memory
// alone: a reload fetches them again.
"use strict";

const { server, demo } = document.body.dataset;

async function main() {
  const facts = demo ? await fetchDemo() : undefined;
  const ui = SwaggerUIBundle({
    url: "openapi.yaml",
    dom_id: "#reference",
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    persistAuthorization: false,
    queryConfigEnabled: false,
    tryItOutEnabled: Boolean(server),
    supportedSubmitMethods: server ? ["get", "post", "delete"] : [],
    validatorUrl: null,
    plugins: [prepared(facts)],
    onComplete: () => facts && offerKeys(ui, facts),
  });
}

async function fetchDemo() {
  const response = await fetch(demo);
  if (!response.ok) throw new Error(`the demo account: ${response.status} ${await response.text()}`);
  return response.json();
}

// prepared changes the document before it is shown: the server that this page
// reaches, and the demo account's ids as the examples that fill in the forms.
function prepared(facts) {
  const change = (document) => {
    if (server) document.servers = [{ url: server }];
    if (!facts) return document;
    const { SyncJobId, FileId, WorkspaceId, IdempotencyKey } = document.components.parameters;
    SyncJobId.example = facts.sync_jobs.succeeded;
    FileId.example = facts.files[facts.workspace_id][0];
    WorkspaceId.example = facts.workspace_id;
    IdempotencyKey.example = crypto.randomUUID();
    document.paths["/byok"].post.requestBody.content["application/json"].examples.everything.value.workspace_id = facts.workspace_id;
    return document;
  };
  return { statePlugins: { spec: { wrapActions: { updateJsonSpec: (original) => (document) => original(change(document)) } } } };
}

// offerKeys puts a choice of the demo account's keys above the operations.
function offerKeys(ui, facts) {
  const keys = [["Management key", facts.management_key], ["API key", facts.api_key], ["No key", undefined]];
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
  document.getElementById("reference").before(choice);
  choose(keys[0][1]);
}

main().catch((error) => {
  const alert = Object.assign(document.createElement("p"), { role: "alert", textContent: `This page does not work: ${error.message}` });
  document.getElementById("reference").replaceWith(alert);
});
