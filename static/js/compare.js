// Charts of one case of a comparison: latency percentiles, and their changes with interval and band.
// A second click on a case hides the details that the first one fetched.
import { colour, darkScheme } from "./charts.js";
import { formatChange } from "./numbers.js";
import { formatMs, percentileOptions } from "./percentile-axis.js";

const charts = new Map();

const formatPercent = (percent) => formatChange(percent / 100);

function latencyLine(series, place) {
  const ink = colour(place === 0 ? "--series-1" : "--series-2");
  return {
    label: series.label,
    data: series.points,
    borderColor: ink,
    backgroundColor: ink,
    borderWidth: 2,
    borderDash: place === 0 ? [6, 4] : [],
    pointStyle: place === 0 ? "rectRot" : "circle",
    pointRadius: 4,
  };
}

function edge(points, key, fill, background) {
  return {
    data: points
      .filter((point) => point[key] !== null)
      .map((point) => ({ x: point.x, y: point[key], raw: point })),
    borderWidth: 0,
    pointRadius: 0,
    pointHitRadius: 0,
    fill,
    backgroundColor: background,
  };
}

function quantileLines({ points }) {
  const ink = colour("--series-2");
  return [
    { ...edge(points, "bandLow", false, ""), label: "" },
    {
      ...edge(points, "bandHigh", "-1", colour("--series-2", 18)),
      label: "95 % band of the whole curve",
    },
    { ...edge(points, "low", false, ""), label: "" },
    { ...edge(points, "high", "-1", colour("--series-2", 38)), label: "95 % interval" },
    {
      label: "change",
      data: points,
      borderColor: ink,
      backgroundColor: ink,
      borderWidth: 2,
      pointRadius: 3,
    },
  ];
}

const KINDS = {
  latency: (data) => ({
    data: { datasets: data.series.map(latencyLine) },
    options: percentileOptions(
      data,
      { type: "logarithmic", name: "latency", format: formatMs },
      {
        title: (items) => items[0]?.raw.label,
        label: (item) => `${item.dataset.label}: ${formatMs(item.raw.y)}`,
      },
    ),
  }),
  quantiles: (data) => ({
    data: { datasets: quantileLines(data) },
    options: percentileOptions(
      data,
      { type: "linear", name: "change", format: formatPercent },
      {
        title: (items) => items[0]?.raw.label,
        label: ({ raw }) => [
          formatPercent(raw.y),
          ...(raw.low === null
            ? []
            : [`interval ${formatPercent(raw.low)} to ${formatPercent(raw.high)}`]),
          ...(raw.bandLow === null
            ? []
            : [`band ${formatPercent(raw.bandLow)} to ${formatPercent(raw.bandHigh)}`]),
        ],
      },
    ),
  }),
};

function draw(canvas) {
  const data = JSON.parse(document.getElementById(canvas.dataset.source).textContent);
  charts.get(canvas)?.destroy();
  charts.set(canvas, new Chart(canvas, { type: "line", ...KINDS[canvas.dataset.chart](data) }));
  canvas.dataset.drawn = "true";
}

function drawAll(isRedrawn) {
  document.querySelectorAll("canvas[data-chart]").forEach((canvas) => {
    if (isRedrawn || !charts.has(canvas)) draw(canvas);
  });
}

function toggleCase(event) {
  const link = event.target.closest(".compared tbody th a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  openCase(link);
}

function openCase(link) {
  const row = link.closest("tr");
  const detail = row.nextElementSibling;
  if (detail?.classList.contains("detail")) {
    detail.hidden = !detail.hidden;
    link.setAttribute("aria-expanded", String(!detail.hidden));
  } else if (row.ariaBusy !== "true") {
    row.ariaBusy = "true";
    htmx.ajax("GET", link.href, { source: row, target: row, swap: "afterend" }).finally(() => {
      row.ariaBusy = "false";
    });
  }
}

function showOpenCases() {
  document.querySelectorAll(".compared tr.detail:not([hidden])").forEach((detail) => {
    detail.previousElementSibling.querySelector("a").setAttribute("aria-expanded", "true");
  });
  drawAll(false);
}

document.addEventListener("click", toggleCase);
document.addEventListener("htmx:after:swap", showOpenCases);
darkScheme.addEventListener("change", () => drawAll(true));
showOpenCases();
