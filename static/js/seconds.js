// A load second by second: responses on the right axis, latency on the left. The warm-up is shaded.
import { colour, darkScheme, formatTick } from "./charts.js";
import { formatValue } from "./numbers.js";

const formatMs = (ms) => formatValue(ms / 1000, "s");
let chart = null;

function line(label, values, name, axis, dash, shape) {
  const ink = colour(name);
  return {
    label,
    data: values,
    yAxisID: axis,
    borderColor: ink,
    backgroundColor: ink,
    borderWidth: 2,
    borderDash: dash,
    pointStyle: shape,
    pointRadius: 3,
  };
}

function options() {
  const text = colour("--muted");
  const grid = { color: colour("--grid") };
  return {
    maintainAspectRatio: false,
    interaction: { mode: "index", intersect: false },
    plugins: {
      legend: { labels: { color: colour("--text"), usePointStyle: true } },
      tooltip: {
        callbacks: {
          title: (items) => `second ${items[0].label}`,
          label: (item) =>
            `${item.dataset.label}: ${item.dataset.yAxisID === "ms" ? formatMs(item.raw) : formatValue(item.raw, "count")}`,
        },
      },
    },
    scales: {
      x: {
        grid,
        title: { display: true, text: "seconds from the start of the window", color: text },
        ticks: { color: text },
      },
      ms: {
        beginAtZero: true,
        grid,
        title: { display: true, text: "latency", color: text },
        ticks: { color: text, callback: (value) => formatMs(value) },
      },
      answers: {
        beginAtZero: true,
        position: "right",
        grid: { drawOnChartArea: false },
        title: { display: true, text: "answers", color: text },
        ticks: { color: text, callback: formatTick },
      },
    },
  };
}

const shade = {
  id: "warmup",
  beforeDatasetsDraw({ ctx, chartArea, scales: { x }, data }) {
    if (!data.warmup) return;
    const last = Math.min(data.warmup, data.labels.length - 1);
    const end = (x.getPixelForValue(data.warmup - 1) + x.getPixelForValue(last)) / 2;
    ctx.save();
    ctx.fillStyle = colour("--plain-soft");
    ctx.fillRect(
      chartArea.left,
      chartArea.top,
      end - chartArea.left,
      chartArea.bottom - chartArea.top,
    );
    ctx.fillStyle = colour("--muted");
    ctx.textBaseline = "top";
    ctx.fillText("warm-up", chartArea.left + 4, chartArea.top + 4);
    ctx.restore();
  },
};

function draw() {
  const canvas = document.querySelector("canvas[data-chart=seconds]");
  const data = JSON.parse(document.getElementById(canvas.dataset.source).textContent);
  chart?.destroy();
  chart = new Chart(canvas, {
    type: "line",
    data: {
      labels: data.seconds,
      warmup: data.warmup,
      datasets: [
        line("p50", data.p50, "--series-1", "ms", [], "circle"),
        line("p99", data.p99, "--series-2", "ms", [6, 4], "rectRot"),
        line("answers", data.answered, "--plain", "answers", [2, 3], "triangle"),
      ],
    },
    options: options(),
    plugins: [shade],
  });
  canvas.dataset.drawn = "true";
}

darkScheme.addEventListener("change", draw);
draw();
