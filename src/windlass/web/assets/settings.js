// Makes tokens: the secret is shown once, in the dialog that made it.
import { at, refresh, send } from "./dashboard.js";
import { clearFaults, dialogFrom, showFault } from "./fields.js";

const dialog = dialogFrom("mint-dialog");
const form = dialog.querySelector("form");
const [fields, minted, secret, yes, no] = ["mint-form", "minted", "minted-secret", "mint-yes", "mint-no"].map((id) => document.getElementById(id));

function open() {
  form.reset();
  clearFaults(form);
  [fields.hidden, yes.hidden, minted.hidden, no.textContent] = [false, false, true, "Cancel"];
  dialog.showModal();
}

function body() {
  const given = { name: form.elements.name.value.trim(), role: form.elements.role.value };
  const lanes = form.elements.lanes.value.split(",").map((lane) => lane.trim()).filter(Boolean);
  if (lanes.length) given.lanes = lanes;
  if (form.elements.expires_in.value.trim()) given.expires_in = form.elements.expires_in.value.trim();
  return given;
}

async function mint() {
  clearFaults(form);
  yes.disabled = true;
  try {
    secret.textContent = (await send("POST", at("/api/v1/tokens"), body())).secret;
  } catch (error) {
    showFault(form, error.message);
    return;
  } finally {
    yes.disabled = false;
  }
  [fields.hidden, yes.hidden, minted.hidden, no.textContent] = [true, true, false, "Done"];
  secret.focus();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("#token-new")) open();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!yes.hidden) mint();
});
no.addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => {
  secret.textContent = "";
  refresh();
});
