// The noise of a host over time: a line with the band of its intervals; a point leads to its run.
import { colour, darkScheme, fade, formatTick } from "./charts.js";

let chart = null;

function datasets(data) {
  const ink = colour("--series-1");
  const edge = { pointRadius: 0, pointHitRadius: 0, borderWidth: 0 };
  return [
    { ...edge, label: "low", data: data.points.map((p) => p.low) },
    {
      ...edge,
      label: "95 % interval",
      data: data.points.map((p) => p.high),
      fill: "-1",
      backgroundColor: fade(ink, 0.18),
    },
    {
      label: data.title,
      data: data.points.map((p) => p.value),
      borderColor: ink,
      backgroundColor: ink,
      borderWidth: 2,
      // A point with suspect trials is a hollow triangle.
      pointStyle: data.points.map((p) => (p.doubtful ? "triangle" : "circle")),
      pointBackgroundColor: data.points.map((p) => (p.doubtful ? colour("--surface") : ink)),
      pointRadius: data.points.map((p) => (p.doubtful ? 6 : 4)),
      pointHoverRadius: 7,
    },
  ];
}

function options(data) {
  const text = colour("--muted");
  const grid = { color: colour("--grid") };
  return {
    maintainAspectRatio: false,
    interaction: { mode: "index", intersect: false },
    onClick: (_, hits) => {
      const url = hits.length ? data.points[hits[0].index].url : null;
      if (url) location.assign(url);
    },
    plugins: {
      legend: { labels: { color: colour("--text"), filter: (item) => item.text !== "low" } },
      tooltip: {
        filter: (item) => item.datasetIndex === 2,
        callbacks: {
          title: (items) =>
            items.length ? `${items[0].label} ${data.points[items[0].dataIndex].subject}` : "",
          label: (item) => data.points[item.dataIndex].shown,
        },
      },
    },
    scales: {
      x: { grid, ticks: { color: text } },
      y: {
        grid,
        beginAtZero: true,
        title: { display: Boolean(data.unit), text: data.unit, color: text },
        ticks: { color: text, callback: formatTick },
      },
    },
  };
}

// A dashed line between two points of different epochs of the host.
const epochs = {
  id: "epochs",
  afterDatasetsDraw({ ctx, chartArea, scales: { x }, data }) {
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--warn");
    ctx.setLineDash([5, 4]);
    ctx.textAlign = "right";
    ctx.textBaseline = "bottom";
    for (const { before, label } of data.changes) {
      const place = (x.getPixelForValue(before - 1) + x.getPixelForValue(before)) / 2;
      ctx.beginPath();
      ctx.moveTo(place, chartArea.top);
      ctx.lineTo(place, chartArea.bottom);
      ctx.stroke();
      ctx.save();
      ctx.translate(place - 4, chartArea.top + 4);
      ctx.rotate(-Math.PI / 2);
      ctx.fillText(`host: ${label}`, 0, 0);
      ctx.restore();
    }
    ctx.restore();
  },
};

function draw() {
  const canvas = document.querySelector("canvas[data-chart=history]");
  const data = JSON.parse(document.getElementById(canvas.dataset.source).textContent);
  chart?.destroy();
  chart = new Chart(canvas, {
    type: "line",
    data: {
      labels: data.points.map((p) => p.label),
      datasets: datasets(data),
      changes: data.changes,
    },
    options: options(data),
    plugins: [epochs],
  });
  canvas.dataset.drawn = "true";
}

darkScheme.addEventListener("change", draw);
draw();
