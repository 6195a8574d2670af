// A table of a report as horizontal bars with intervals. Reference results are hollow.
import { animation, colour, darkScheme, fade, formatTick } from "./charts.js";
import { formatSignificant } from "./numbers.js";

const charts = new Map();
const DASHES = [[], [], [6, 3], [2, 2], [8, 2, 2, 2], [1, 3]];

function dataset(series, place) {
  const ink = colour(place % 2 === 0 ? "--series-1" : "--series-2");
  return {
    label: series.label,
    data: series.points.map((point) => point.value),
    points: series.points,
    backgroundColor: series.published
      ? "transparent"
      : fade(ink, Math.max(0.25, 0.85 - 0.2 * Math.floor(place / 2))),
    borderColor: ink,
    borderWidth: 1.5,
    borderDash: DASHES[place % DASHES.length],
    maxBarThickness: 22,
  };
}

// The interval of each bar: a line with ends across it.
const whiskers = {
  id: "whiskers",
  afterDatasetsDraw(chart) {
    const {
      ctx,
      data,
      scales: { x },
      chartArea,
    } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(chartArea.left, chartArea.top, chartArea.width, chartArea.height);
    ctx.clip();
    ctx.strokeStyle = colour("--text");
    ctx.lineWidth = 1.5;
    data.datasets.forEach((set, place) => {
      const bars = chart.getDatasetMeta(place);
      if (bars.hidden) return;
      set.points.forEach(({ low, high }, index) => {
        if (low === null || high === null) return;
        const { y } = bars.data[index];
        const [from, to] = [x.getPixelForValue(low), x.getPixelForValue(high)];
        ctx.beginPath();
        ctx.moveTo(from, y);
        ctx.lineTo(to, y);
        for (const end of [from, to]) {
          ctx.moveTo(end, y - 4);
          ctx.lineTo(end, y + 4);
        }
        ctx.stroke();
      });
    });
    ctx.restore();
  },
};

function largest(data) {
  return Math.max(
    ...data.series.flatMap(({ points }) =>
      points.map(({ value, high }) => Math.max(value ?? 0, high ?? 0)),
    ),
  );
}

// Names get at most two fifths of the width. They often differ at their ends.
function shortened(name, width) {
  const most = Math.max(12, Math.floor((width * 0.4) / 7));
  if (name.length <= most) return name;
  const end = Math.floor(most / 3);
  return `${name.slice(0, most - end - 1)}…${name.slice(-end)}`;
}

// A legend names the series if there are several.
function nameOf({ series, unit }) {
  return [
    series.length === 1 ? series[0].label : "",
    series.length === 1 && unit ? `(${unit})` : unit,
  ]
    .filter(Boolean)
    .join(" ");
}

function options(data) {
  const text = colour("--muted");
  const grid = { color: colour("--grid") };
  return {
    indexAxis: "y",
    animation,
    maintainAspectRatio: false,
    plugins: {
      legend: { display: data.series.length > 1, labels: { color: colour("--text") } },
      tooltip: {
        callbacks: {
          label: ({ dataset, dataIndex }) => {
            const { shown, low, high } = dataset.points[dataIndex];
            const bounds =
              low === null ? "" : ` (${formatSignificant(low)} to ${formatSignificant(high)})`;
            return `${dataset.label}: ${shown} ${data.unit}${bounds}`;
          },
        },
      },
    },
    scales: {
      x: {
        beginAtZero: true,
        suggestedMax: largest(data),
        grid,
        title: { display: true, text: nameOf(data), color: text },
        ticks: { color: text, callback: formatTick },
      },
      y: {
        grid: { display: false },
        ticks: {
          color: colour("--text"),
          autoSkip: false,
          font: { size: 12 },
          callback(place) {
            return shortened(this.getLabelForValue(place), this.chart.width);
          },
        },
      },
    },
  };
}

function draw(canvas) {
  const data = JSON.parse(document.getElementById(canvas.dataset.source).textContent);
  charts.get(canvas)?.destroy();
  // The canvas has this height before the script runs, so that the page does not jump. The library
  // then needs it at the frame.
  const frame = canvas.parentElement;
  frame.style.height = "";
  canvas.height = data.height;
  frame.style.height = `${frame.offsetHeight}px`;
  charts.set(
    canvas,
    new Chart(canvas, {
      type: "bar",
      data: { labels: data.labels, datasets: data.series.map(dataset) },
      options: options(data),
      plugins: [whiskers],
    }),
  );
  canvas.dataset.drawn = "true";
}

function drawAll() {
  for (const [canvas, chart] of charts) {
    if (canvas.isConnected) continue;
    chart.destroy();
    charts.delete(canvas);
  }
  document.querySelectorAll("canvas[data-chart=report]").forEach(draw);
}

darkScheme.addEventListener("change", drawAll);
document.addEventListener("htmx:after:swap", drawAll);
drawAll();
