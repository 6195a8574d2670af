// Shared by charts over percentiles: their axes and legend.
import { colour } from "./charts.js";
import { formatValue } from "./numbers.js";

export const formatMs = (ms) => formatValue(ms / 1000, "s");

function percentileAxis(data, text, grid) {
  return {
    type: "linear",
    grid,
    title: { display: true, text: "percentile", color: text },
    afterBuildTicks: (axis) => {
      axis.ticks = data.ticks.map(({ value }) => ({ value }));
    },
    ticks: {
      color: text,
      callback: (value) => data.ticks.find((tick) => tick.value === value)?.label,
    },
  };
}

// The options of a line chart over percentiles; `data.ticks` are those of the horizontal axis.
export function percentileOptions(data, y, tooltip) {
  const text = colour("--muted");
  const grid = { color: colour("--grid") };
  return {
    maintainAspectRatio: false,
    interaction: { mode: "nearest", axis: "x", intersect: false },
    plugins: {
      legend: {
        labels: {
          color: colour("--text"),
          usePointStyle: true,
          filter: (item) => item.text !== "",
        },
      },
      tooltip: { callbacks: tooltip, filter: (item) => item.dataset.pointRadius > 0 },
    },
    scales: {
      x: percentileAxis(data, text, grid),
      y: {
        ...y,
        grid,
        title: { display: true, text: y.name, color: text },
        ticks: { color: text, maxTicksLimit: 8, callback: y.format },
      },
    },
  };
}
