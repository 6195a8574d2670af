// Keyboard shortcuts of the list of alerts: move between rows, and select an action. They work only
// while a row has the focus, so that typing elsewhere triggers nothing.
const form = document.querySelector("form.triage");
const rows = [...form.querySelectorAll("tr[data-alert]")];
const ACTIONS = {
  a: "acknowledge",
  c: "confirm",
  b: "accept",
  f: "dismiss",
  s: "silence",
  r: "resolve",
  o: "assign",
};
const FIELDS = { silence: "until", assign: "assignee" };

function focusRow(row) {
  row?.querySelector("th a").focus();
}

// Selects an action for the selected rows, else for this row, and focuses the field of the action.
function selectAction(row, action) {
  const boxes = [...form.querySelectorAll("input[name=alert]")];
  if (!boxes.some((box) => box.checked)) row.querySelector("input[name=alert]").checked = true;
  form.elements.do.value = action;
  form.elements[FIELDS[action] ?? "note"].focus();
}

form.addEventListener("keydown", (event) => {
  const row = event.target.closest("tr[data-alert]");
  if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
  const index = rows.indexOf(row),
    key = event.key.toLowerCase();
  if (key === "arrowdown" || key === "j") focusRow(rows[index + 1]);
  else if (key === "arrowup" || key === "k") focusRow(rows[index - 1]);
  else if (key === "x") row.querySelector("input[name=alert]").click();
  else if (ACTIONS[key]) selectAction(row, ACTIONS[key]);
  else return;
  event.preventDefault();
});
