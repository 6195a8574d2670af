// The list of alerts by keyboard: from row to row, and what to do with the chosen ones. Keys work
// only while a row is focused, so that no letter typed elsewhere does anything.
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

// Selects an action for the row, or for the rows that are chosen already, and goes to its field.
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
