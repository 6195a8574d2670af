// One chart of a history: a line for each series with the band of its intervals, and the overlay.
import { colour, fade, formatTick } from "./charts.js";
import { visiblePoints } from "./history-data.js";
import {
  flagAt,
  heightAbove,
  isCut,
  isSmall,
  loadedLines,
  overlay,
  verticalLines,
} from "./history-overlay.js";
import { unitFor } from "./numbers.js";

const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [1, 3]];
const SHAPES = ["circle", "rect", "triangle", "rectRot", "star", "cross"];

function chartColours(lines) {
  return {
    lines: lines.map(({ number }) => colour(`--series-${number}`)),
    text: colour("--text"),
    muted: colour("--muted"),
    grid: colour("--grid"),
    surface: colour("--surface"),
    font: getComputedStyle(document.body).fontFamily,
    good: colour("--good"),
    bad: colour("--bad"),
    warn: colour("--warn"),
    calm: colour("--calm"),
  };
}

// `lines` are those of the page's configuration, each with `data` once it has come.
export function historyChart(canvas, config, view) {
  let colours = chartColours(config.lines);
  const chart = new Chart(canvas, {
    type: "line",
    data: {
      datasets: [],
      own: { config, view, colours: () => colours, title: "", verticalLines: [] },
    },
    options: {
      parsing: false,
      normalized: true,
      maintainAspectRatio: false,
      events: [],
      layout: { padding: (context) => ({ top: heightAbove(context.chart) }) },
      plugins: {
        legend: { display: false },
        tooltip: { enabled: false },
        decimation: { enabled: false },
      },
      scales: {
        x: {
          type: "linear",
          bounds: "data",
          ticks: { maxRotation: 0, autoSkipPadding: 14, includeBounds: false, precision: 0 },
        },
        y: {
          grace: "4%",
          title: { display: true, text: ({ chart }) => axisTitle(chart) },
          ticks: { callback: formatTick },
        },
      },
    },
    plugins: [bands, overlay],
  });
  return {
    chart,
    restyle() {
      colours = chartColours(config.lines);
      update(chart);
    },
    update() {
      update(chart);
    },
    flagAt: (x, y) => flagAt(chart, x, y),
  };
}

// How the values of a line become positions on the vertical axis, and the name of its unit.
function verticalScale(config, view) {
  const lines = loadedLines(config);
  if (view.relative) {
    return {
      unit: "% against the first point",
      scaleOf: ({ data }) => {
        const base = data.value.find((value) => value !== null && value !== 0);
        return (value) => (value / base - 1) * 100;
      },
    };
  }
  let largest = 0;
  for (const { data } of lines)
    for (const value of data.value)
      if (value !== null) largest = Math.max(largest, Math.abs(value));
  const [size, unit] = unitFor(config.unit, largest);
  return { unit, scaleOf: () => (value) => value / size };
}

function update(chart) {
  const { config, view, colours } = chart.data.own;
  const current = colours();
  const { first, last } = view.window();
  const { unit, scaleOf } = verticalScale(config, view);
  const columns = Math.max(200, chart.width - 60);
  chart.data.datasets = loadedLines(config).flatMap((line) =>
    datasetsOf(line, config.lines.indexOf(line), {
      first,
      last,
      columns,
      scale: scaleOf(line),
      colours: current,
    }),
  );
  const { x, y } = chart.options.scales;
  Object.assign(x, { min: first - 0.5, max: last + 0.5 });
  x.grid = { color: current.grid };
  y.grid = { color: current.grid };
  x.ticks.color = y.ticks.color = y.title.color = current.muted;
  x.ticks.callback = (rank) => view.nameAt(rank);
  // A small chart has no room for the name, which is its heading.
  const name = view.relative || isSmall(chart) ? "" : config.title;
  chart.data.own.title = [name, unit].filter(Boolean).join(", ");
  Object.assign(y, axisLimits(chart, first, last));
  chart.data.own.verticalLines = verticalLines(chart);
  chart.update("none");
}

// Chart.js requests it as soon as it knows where the axis begins.
function axisTitle(chart) {
  const { title } = chart.data.own;
  return isCut(chart) ? `${title} (axis cut)` : title;
}

// A line, and the points of side branches next to it, as datasets of the chart.
function datasetsOf(line, place, { first, last, columns, scale, colours }) {
  const { data } = line,
    lineColour = colours.lines[place],
    dense = last - first > 160;
  const isSuspect = ({ index }) =>
    index >= 0 && (data.suspect[index] > 0 || data.outlier.has(index));
  const points = visiblePoints(data, first, last, columns, scale);
  const isGrouped = points.some((point) => point.least !== undefined);
  // Outliers stay visible among grouped points.
  const sidePoints = [...data.side, ...(isGrouped ? data.outlier : [])]
    .filter((i) => data.value[i] !== null && data.rank[i] >= first && data.rank[i] <= last)
    .map((i) => ({ x: data.rank[i], y: scale(data.value[i]), index: i }));
  const styleOf = (style) => (isGrouped ? style(points[0]) : points.map(style));
  return [
    {
      line,
      scale,
      data: points,
      borderColor: lineColour,
      borderWidth: dense ? 1.5 : 2,
      borderDash: dense ? [] : DASHES[place % DASHES.length],
      pointBorderColor: lineColour,
      pointStyle: styleOf((p) => (isSuspect(p) ? "triangle" : SHAPES[place % SHAPES.length])),
      pointBackgroundColor: styleOf((p) => (isSuspect(p) ? colours.surface : lineColour)),
      pointRadius: styleOf((p) =>
        isGrouped ? 0 : isSuspect(p) ? (dense ? 3.5 : 5.5) : dense ? 0 : 3,
      ),
    },
    {
      line,
      scale,
      side: true,
      data: sidePoints,
      showLine: false,
      pointBackgroundColor: colours.surface,
      pointBorderColor: lineColour,
      pointStyle: sidePoints.map((p) => (isSuspect(p) ? "triangle" : "circle")),
      pointRadius: sidePoints.map((p) => (isSuspect(p) ? 4 : 2.5)),
    },
  ];
}

// The axis covers the bands, except bands so wide that the line would become flat.
function axisLimits(chart, first, last) {
  let low = Infinity,
    high = -Infinity,
    bandLow = Infinity,
    bandHigh = -Infinity;
  for (const { data } of chart.data.datasets) {
    for (const point of data) {
      if (Number.isNaN(point.y) || point.x < first - 1 || point.x > last + 1) continue;
      low = Math.min(low, point.least ?? point.y);
      high = Math.max(high, point.most ?? point.y);
      bandLow = Math.min(bandLow, point.low ?? Infinity);
      bandHigh = Math.max(bandHigh, point.high ?? -Infinity);
    }
  }
  if (low > high) return { suggestedMin: undefined, suggestedMax: undefined };
  const margin = Math.max(high - low, Math.abs(high) * 0.02);
  return {
    suggestedMin: Math.max(Math.min(low, bandLow), low - margin),
    suggestedMax: Math.min(Math.max(high, bandHigh), high + margin),
  };
}

const bands = {
  id: "bands",
  beforeDatasetsDraw(chart) {
    const { ctx, chartArea } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(chartArea.left, chartArea.top, chartArea.width, chartArea.height);
    ctx.clip();
    for (const { data, side, borderColor } of chart.data.datasets) {
      if (side) continue;
      ctx.fillStyle = fade(borderColor, 0.16);
      fillArea(chart, data, (point) => (point.low === null ? null : [point.low, point.high]));
      ctx.fillStyle = fade(borderColor, 0.3);
      fillArea(chart, data, (point) =>
        point.least === undefined ? null : [point.least, point.most],
      );
    }
    ctx.restore();
  },
};

// Fills between the two edges of neighbouring points; `edges` returns null where there are none.
function fillArea(chart, points, edges) {
  const {
    ctx,
    scales: { x, y },
  } = chart;
  let run = [];
  const close = () => {
    if (run.length === 1) run.push({ ...run[0], x: run[0].x + 3 });
    if (run.length) {
      ctx.beginPath();
      ctx.moveTo(run[0].x, run[0].high);
      for (const { x: at, high } of run.slice(1)) ctx.lineTo(at, high);
      for (let i = run.length - 1; i >= 0; i -= 1) ctx.lineTo(run[i].x, run[i].low);
      ctx.fill();
    }
    run = [];
  };
  for (const point of points) {
    const pair = edges(point);
    if (pair === null) close();
    else
      run.push({
        x: x.getPixelForValue(point.x),
        low: y.getPixelForValue(pair[0]),
        high: y.getPixelForValue(pair[1]),
      });
  }
  close();
}
