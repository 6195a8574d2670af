// Counts the seconds of the step that is being tried; each new list brings the next step.
let tried = "";
let since = 0;

function tick() {
  const element = document.querySelector("[data-elapsed]");
  const step = element?.closest("li").querySelector("h2").textContent ?? "";
  if (step !== tried) {
    tried = step;
    since = performance.now();
  }
  if (element) element.textContent = `${Math.round((performance.now() - since) / 1000)} s`;
}

setInterval(tick, 250);
