// Counts the times left down between two answers of the server.
const known = new WeakMap();

function shown(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function tick() {
  for (const element of document.querySelectorAll("[data-seconds-left]")) {
    const said = element.dataset.secondsLeft;
    let since = known.get(element);
    if (since?.said !== said) {
      since = { said, at: performance.now() };
      known.set(element, since);
    }
    const text = shown(Number(said) - (performance.now() - since.at) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}

setInterval(tick, 500);
tick();
