// Latency percentiles of two commits: ms, logarithmic; the places of the percentiles are given.
const dark = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const charts = new Map();

function colour(name) {
  // Canvas does not know light-dark(): let the style sheet engine resolve it.
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

function shownMs(ms) {
  if (ms >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  return ms >= 1 ? `${ms.toPrecision(3)} ms` : `${(ms * 1000).toPrecision(3)} µs`;
}

function dataset(series, place) {
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
    showLine: true,
    cubicInterpolationMode: "monotone",
  };
}

function options(data) {
  const text = colour("--muted");
  const grid = { color: colour("--grid") };
  return {
    animation: still ? false : { duration: 300 },
    maintainAspectRatio: false,
    interaction: { mode: "nearest", axis: "x", intersect: false },
    plugins: {
      legend: { labels: { color: colour("--text"), usePointStyle: true } },
      tooltip: {
        callbacks: {
          title: (items) => items[0].raw.label,
          label: (item) => `${item.dataset.label}: ${shownMs(item.raw.y)}`,
        },
      },
    },
    scales: {
      x: {
        type: "linear",
        grid,
        title: { display: true, text: "percentile", color: text },
        afterBuildTicks: (axis) => { axis.ticks = data.ticks.map(({ value }) => ({ value })); },
        ticks: { color: text, callback: (value) => data.ticks.find((t) => t.value === value)?.label },
      },
      y: {
        type: "logarithmic",
        grid,
        title: { display: true, text: "latency", color: text },
        ticks: { color: text, maxTicksLimit: 8, callback: (value) => shownMs(value) },
      },
    },
  };
}

function draw(canvas) {
  const data = JSON.parse(document.getElementById(canvas.dataset.source).textContent);
  charts.get(canvas)?.destroy();
  charts.set(canvas, new Chart(canvas, {
    type: "scatter",
    data: { datasets: data.series.map(dataset) },
    options: options(data),
  }));
  canvas.dataset.drawn = "true";
}

function drawAll() {
  document.querySelectorAll("canvas[data-chart=latency]").forEach(draw);
}

dark.addEventListener("change", drawAll);
drawAll();
