// Latency of each load of a trial: p50 and p99, ms, logarithmic; what the objective says of a load
// is its colour and its shape.
import { colour } from "./colour.js";
import { shownMs } from "./milliseconds.js";
import { grouped } from "./numbers.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const MARKS = {
  passed: ["--good", "circle"],
  valid: ["--series-1", "circle"],
  suspect: ["--warn", "triangle"],
  missed: ["--bad", "crossRot"],
  invalid: ["--bad", "crossRot"],
};
let chart = null;

function line(label, points, key, dash) {
  const known = points.filter((point) => point[key] !== null);
  const inks = known.map((point) => colour(MARKS[point.outcome][0]));
  return {
    label,
    data: known.map((point) => ({ x: point.x, y: point[key], label: point.label })),
    borderColor: colour("--line-strong"),
    borderWidth: 1.5,
    borderDash: dash,
    pointStyle: known.map((point) => MARKS[point.outcome][1]),
    pointBackgroundColor: inks,
    pointBorderColor: inks,
    pointBorderWidth: 2,
    pointRadius: 5,
    showLine: true,
  };
}

function options(data) {
  const text = colour("--muted");
  const grid = { color: colour("--grid") };
  return {
    animation: still ? false : { duration: 300 },
    maintainAspectRatio: false,
    interaction: { mode: "nearest", intersect: false },
    plugins: {
      legend: { labels: { color: colour("--text"), usePointStyle: false, boxHeight: 0 } },
      tooltip: {
        callbacks: {
          title: (items) => items[0].raw.label,
          label: (item) => `${item.dataset.label}: ${shownMs(item.raw.y)}`,
        },
      },
    },
    scales: {
      x: { type: "linear", grid, beginAtZero: true, title: { display: true, text: data.xTitle, color: text }, ticks: { color: text, callback: grouped } },
      y: {
        type: "logarithmic",
        grid,
        title: { display: true, text: "latency", color: text },
        ticks: { color: text, maxTicksLimit: 8, callback: (value) => shownMs(value) },
      },
    },
  };
}

function draw() {
  const canvas = document.querySelector("canvas[data-chart=loads]");
  const data = JSON.parse(document.getElementById(canvas.dataset.source).textContent);
  chart?.destroy();
  chart = new Chart(canvas, {
    type: "scatter",
    data: { datasets: [line("p50", data.points, "p50", [2, 3]), line("p99", data.points, "p99", [])] },
    options: options(data),
  });
  canvas.dataset.drawn = "true";
}

dark.addEventListener("change", draw);
draw();
