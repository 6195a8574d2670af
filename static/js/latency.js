// The latency curve of a trial: its percentiles, joined by straight lines.
import { colour, darkScheme } from "./charts.js";
import { formatMs, percentileOptions } from "./percentile-axis.js";

let chart = null;

function draw() {
  const canvas = document.querySelector("canvas[data-chart=latency]");
  const data = JSON.parse(document.getElementById(canvas.dataset.source).textContent);
  const ink = colour("--series-1");
  const options = percentileOptions(
    data,
    { type: "linear", name: "latency", format: formatMs },
    {
      title: (items) => items[0]?.raw.label,
      label: (item) => formatMs(item.raw.y),
    },
  );
  options.plugins.legend.display = false;
  options.scales.y.beginAtZero = true;
  chart?.destroy();
  chart = new Chart(canvas, {
    type: "line",
    data: {
      datasets: [
        {
          data: data.points,
          borderColor: ink,
          backgroundColor: ink,
          borderWidth: 2,
          pointRadius: 4,
        },
      ],
    },
    options,
  });
  canvas.dataset.drawn = "true";
}

darkScheme.addEventListener("change", draw);
draw();
