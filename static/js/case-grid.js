// The grid of cases: a heading selects a whole row, column or axis, without a request.
const BOXES = 'input[name="boxes"]';

function boxesOf(button) {
  const grid = button.closest(".case-grid");
  const [kind] = button.value.split(".");
  if (kind === "row") return button.closest("tr").querySelectorAll(BOXES);
  if (kind === "axis") return button.closest(".values").querySelectorAll(BOXES);
  if (kind === "all") return grid.querySelectorAll(BOXES);
  const place = button.closest("th").cellIndex;
  return [...grid.querySelectorAll("tbody tr")]
    .map((row) => row.cells[place].querySelector(BOXES))
    .filter(Boolean);
}

function stateOf(boxes) {
  const chosen = boxes.filter((box) => box.checked).length;
  if (chosen === boxes.length) return "all";
  return chosen ? "some" : "none";
}

function show(grid) {
  for (const button of grid.querySelectorAll(".toggle")) {
    button.dataset.state = stateOf([...boxesOf(button)]);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".case-grid .toggle");
  if (!button) return;
  event.preventDefault();
  const boxes = [...boxesOf(button)];
  const checked = stateOf(boxes) !== "all";
  for (const box of boxes) box.checked = checked;
  // The form listens for changes of its fields, and requests a new preview.
  button.dispatchEvent(new Event("change", { bubbles: true }));
});

document.addEventListener("change", (event) => {
  const grid = event.target.closest(".case-grid");
  if (grid) show(grid);
});
