// The list of alerts by keyboard: from row to row, and what to do with those chosen. Only while a
// row is focused, so that no letter typed elsewhere does anything.
const form = document.querySelector("form.triage");
const rows = [...form.querySelectorAll("tr[data-alert]")];
const deed = form.elements.do;
const DEEDS = { a: "acknowledge", c: "confirm", b: "accept", f: "dismiss", s: "silence", r: "resolve", o: "assign" };
const FIELDS = { silence: "until", assign: "assignee" };

function go(row) {
  row?.querySelector("th a").focus();
}

// Chooses what to do with the row, or with those that are chosen already, and goes where it is told.
function choose(row, name) {
  const boxes = [...form.querySelectorAll("input[name=alert]")];
  if (!boxes.some((box) => box.checked)) row.querySelector("input[name=alert]").checked = true;
  deed.value = name;
  form.elements[FIELDS[name] ?? "note"].focus();
}

form.addEventListener("keydown", (event) => {
  const row = event.target.closest("tr[data-alert]");
  if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
  const place = rows.indexOf(row), key = event.key.toLowerCase();
  if (key === "arrowdown" || key === "j") go(rows[place + 1]);
  else if (key === "arrowup" || key === "k") go(rows[place - 1]);
  else if (key === "x") row.querySelector("input[name=alert]").click();
  else if (DEEDS[key]) choose(row, DEEDS[key]);
  else return;
  event.preventDefault();
});
