// Shows refusals of the API beside the field of a form that they name.

// Puts a dialog beside the part of the page that is drawn anew: an answer that was under way when it opened would empty it.
export function dialogFrom(id) {
  document.body.append(document.getElementById(id).content.cloneNode(true));
  return document.body.lastElementChild;
}

export function place(form, name) {
  return form.querySelector(`[data-field="${CSS.escape(name)}"]`);
}

// Of all fields, or of some.
export function clearFaults(form, names = null) {
  form.querySelector(".problem").hidden = true;
  for (const field of form.querySelectorAll("[data-field]")) {
    if (names && !names.includes(field.dataset.field)) continue;
    field.querySelector(".fault").hidden = true;
    field.querySelector("input, select, textarea").removeAttribute("aria-invalid");
  }
}

// A message that names a field which is not shown stands below the form. The focus stays while the user types.
export function showFault(form, message, { isTyping = false } = {}) {
  const [, name, text] = /^([a-z_]+)[^:]*: (.*)$/s.exec(message) || [];
  const field = name && place(form, name);
  if (!field || field.hidden) {
    const problem = form.querySelector(".problem");
    problem.textContent = message;
    problem.hidden = false;
    return;
  }
  field.querySelector(".fault").textContent = text;
  field.querySelector(".fault").hidden = false;
  const input = field.querySelector("input, select, textarea");
  input.setAttribute("aria-invalid", "true");
  if (!isTyping) input.focus();
}
