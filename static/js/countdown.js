// Counts the time left down between two answers of the server.
let said = null;
let since = 0;

function shown(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function tick() {
  const element = document.querySelector("[data-seconds-left]");
  if (!element) return;
  if (element.dataset.secondsLeft !== said) {
    said = element.dataset.secondsLeft;
    since = performance.now();
  }
  const passed = (performance.now() - since) / 1000;
  element.textContent = shown(Number(said) - passed);
}

setInterval(tick, 500);
tick();
