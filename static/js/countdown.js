// Counts remaining times down between two responses of the server.
import { formatDuration } from "./numbers.js";

// Element → the last value of the server, and when it was read.
const readings = new WeakMap();

function update() {
  for (const element of document.querySelectorAll("[data-seconds-left]")) {
    const value = element.dataset.secondsLeft;
    let reading = readings.get(element);
    if (reading?.value !== value) {
      reading = { value, at: performance.now() };
      readings.set(element, reading);
    }
    const text = formatDuration(Number(value) - (performance.now() - reading.at) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}

setInterval(update, 500);
update();
