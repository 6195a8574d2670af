// Counts the seconds of the running check. Each new list from the server contains the next check.
let current = "";
let startedAt = 0;

function update() {
  const element = document.querySelector("[data-elapsed]");
  const check = element?.closest("li").querySelector("h2").textContent ?? "";
  if (check !== current) {
    current = check;
    startedAt = performance.now();
  }
  if (element) element.textContent = `${Math.round((performance.now() - startedAt) / 1000)} s`;
}

setInterval(update, 250);
