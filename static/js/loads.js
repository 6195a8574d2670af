// Latency of each load of a trial: p50 and p99 in ms, logarithmic. Colour and shape of a point show
// the outcome of the objective.
import { colour, darkScheme, formatTick } from "./charts.js";
import { formatValue } from "./numbers.js";

const formatMs = (ms) => formatValue(ms / 1000, "s");
// Outcome of a load → its colour and its shape.
const STYLES = {
  passed: ["--good", "circle"],
  valid: ["--series-1", "circle"],
  suspect: ["--warn", "triangle"],
  missed: ["--bad", "crossRot"],
  invalid: ["--bad", "crossRot"],
};
let chart = null;

function line(label, points, key, dash) {
  const present = points.filter((point) => point[key] !== null);
  const inks = present.map((point) => colour(STYLES[point.outcome][0]));
  return {
    label,
    data: present.map((point) => ({ x: point.x, y: point[key], label: point.label })),
    borderColor: colour("--line-strong"),
    borderWidth: 1.5,
    borderDash: dash,
    pointStyle: present.map((point) => STYLES[point.outcome][1]),
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
    maintainAspectRatio: false,
    interaction: { mode: "nearest", intersect: false },
    plugins: {
      legend: { labels: { color: colour("--text"), usePointStyle: false, boxHeight: 0 } },
      tooltip: {
        callbacks: {
          title: (items) => items[0].raw.label,
          label: (item) => `${item.dataset.label}: ${formatMs(item.raw.y)}`,
        },
      },
    },
    scales: {
      x: {
        type: "linear",
        grid,
        beginAtZero: true,
        title: { display: true, text: data.xTitle, color: text },
        ticks: { color: text, callback: formatTick },
      },
      y: {
        type: "logarithmic",
        grid,
        title: { display: true, text: "latency", color: text },
        ticks: { color: text, maxTicksLimit: 8, callback: (value) => formatMs(value) },
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
    data: {
      datasets: [line("p50", data.points, "p50", [2, 3]), line("p99", data.points, "p99", [])],
    },
    options: options(data),
  });
  canvas.dataset.drawn = "true";
}

darkScheme.addEventListener("change", draw);
draw();
