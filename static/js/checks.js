// Counts the seconds of the step that is being tried; the server's answer brings the next list.
let tried = null;
let since = 0;

function tick() {
  const element = document.querySelector(".htmx-request [data-elapsed]");
  if (element !== tried) {
    tried = element;
    since = performance.now();
  }
  if (element) element.textContent = `${Math.round((performance.now() - since) / 1000)} s`;
}

setInterval(tick, 250);
