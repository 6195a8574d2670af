// One chart of a history: a line a series with the band of its intervals, and what is marked.
import { colour } from "./colour.js";
import { drawable, unitFor } from "./history-data.js";
import { faint, flagAt, known, marks, marksOf } from "./history-marks.js";
import { grouped } from "./numbers.js";

const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [1, 3]];
const SHAPES = ["circle", "rect", "triangle", "rectRot", "star", "cross"];

function inks(lines) {
  return {
    lines: lines.map(({ number }) => colour(`--series-${number}`)),
    text: colour("--text"), muted: colour("--muted"), grid: colour("--grid"), surface: colour("--surface"),
    font: getComputedStyle(document.body).fontFamily,
    good: colour("--good"), bad: colour("--bad"), warn: colour("--warn"), calm: colour("--calm"),
  };
}

// `lines` are those of the page's configuration, each with `data` once it has come.
export function historyChart(canvas, config, look) {
  let colours = inks(config.lines);
  const chart = new Chart(canvas, {
    type: "line",
    data: { datasets: [], own: { config, look, colours: () => colours } },
    options: {
      animation: false,
      parsing: false, normalized: true, maintainAspectRatio: false, events: [],
      layout: { padding: { top: 18 } },
      plugins: { legend: { display: false }, tooltip: { enabled: false }, decimation: { enabled: false } },
      scales: {
        x: { type: "linear", bounds: "data", ticks: { maxRotation: 0, autoSkipPadding: 14, includeBounds: false, precision: 0 } },
        y: { grace: "4%", title: { display: true }, ticks: { callback: grouped } },
      },
    },
    plugins: [bands, marks],
  });
  return {
    chart,
    restyle() { colours = inks(config.lines); update(chart); },
    update() { update(chart); },
    flagAt: (x, y) => flagAt(chart, x, y),
  };
}

// How values of a line become places on the vertical axis, and the name of its unit.
function scaling(config, look) {
  const lines = known(config);
  if (look.relative) {
    return { unit: "% against the first point", of: ({ data }) => {
      const base = data.value.find((value) => value !== null && value !== 0);
      return (value) => (value / base - 1) * 100;
    } };
  }
  let largest = 0;
  for (const { data } of lines) for (const value of data.value) if (value !== null) largest = Math.max(largest, Math.abs(value));
  const [size, unit] = unitFor(config.unit, largest);
  return { unit, of: () => (value) => value / size };
}

function update(chart) {
  const { config, look, colours } = chart.data.own;
  const ink = colours();
  const { first, last } = look.window();
  const { unit, of } = scaling(config, look);
  const columns = Math.max(200, chart.width - 60);
  chart.data.datasets = known(config).flatMap((line) => setsOf(line, config.lines.indexOf(line), { first, last, columns, scale: of(line), ink }));
  const { x, y } = chart.options.scales;
  Object.assign(x, { min: first - 0.5, max: last + 0.5 });
  x.grid = { color: ink.grid };
  y.grid = { color: ink.grid };
  x.ticks.color = y.ticks.color = y.title.color = ink.muted;
  x.ticks.callback = (rank) => look.nameAt(rank);
  y.title.text = unit;
  y.title.display = Boolean(unit);
  Object.assign(y, reachOf(chart, first, last));
  chart.data.own.marks = marksOf(chart);
  chart.update("none");
}

// A line and what stands beside it, as the chart draws them.
function setsOf(line, place, { first, last, columns, scale, ink }) {
  const { data } = line, own = ink.lines[place], dense = last - first > 160;
  const isDoubtful = ({ index }) => index >= 0 && (data.suspect[index] > 0 || data.outlier.has(index));
  const points = drawable(data, first, last, columns, scale);
  const crowded = points.some((point) => point.least !== undefined);
  // What stands out is still seen where others share a column.
  const beside = [...data.side, ...(crowded ? data.outlier : [])]
    .filter((i) => data.value[i] !== null && data.rank[i] >= first && data.rank[i] <= last)
    .map((i) => ({ x: data.rank[i], y: scale(data.value[i]), index: i }));
  const each = (of) => (crowded ? of(points[0]) : points.map(of));
  return [
    {
      line, scale, data: points, borderColor: own, borderWidth: dense ? 1.5 : 2, borderDash: dense ? [] : DASHES[place % DASHES.length], pointBorderColor: own,
      pointStyle: each((p) => (isDoubtful(p) ? "triangle" : SHAPES[place % SHAPES.length])),
      pointBackgroundColor: each((p) => (isDoubtful(p) ? ink.surface : own)),
      pointRadius: each((p) => (crowded ? 0 : isDoubtful(p) ? (dense ? 3.5 : 5.5) : dense ? 0 : 3)),
    },
    {
      line, scale, side: true, data: beside, showLine: false, pointBackgroundColor: ink.surface, pointBorderColor: own,
      pointStyle: beside.map((p) => (isDoubtful(p) ? "triangle" : "circle")), pointRadius: beside.map((p) => (isDoubtful(p) ? 4 : 2.5)),
    },
  ];
}

// The axis holds the bands, but no band that would leave the line no room.
function reachOf(chart, first, last) {
  let low = Infinity, high = -Infinity, bandLow = Infinity, bandHigh = -Infinity;
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
  const room = Math.max(high - low, Math.abs(high) * 0.02);
  return { suggestedMin: Math.max(Math.min(low, bandLow), low - room), suggestedMax: Math.min(Math.max(high, bandHigh), high + room) };
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
      ctx.fillStyle = faint(borderColor, 0.16);
      area(chart, data, (point) => (point.low === null ? null : [point.low, point.high]));
      ctx.fillStyle = faint(borderColor, 0.3);
      area(chart, data, (point) => (point.least === undefined ? null : [point.least, point.most]));
    }
    ctx.restore();
  },
};

// Fills between the two edges of neighbouring points; `edges` says null where there are none.
function area(chart, points, edges) {
  const { ctx, scales: { x, y } } = chart;
  let run = [];
  const close = () => {
    if (run.length === 1) run.push({ ...run[0], x: run[0].x + 3 });
    if (run.length) {
      ctx.beginPath();
      run.forEach(({ x: at, high }, i) => (i ? ctx.lineTo(at, high) : ctx.moveTo(at, high)));
      for (let i = run.length - 1; i >= 0; i -= 1) ctx.lineTo(run[i].x, run[i].low);
      ctx.fill();
    }
    run = [];
  };
  for (const point of points) {
    const found = edges(point);
    if (found === null) close();
    else run.push({ x: x.getPixelForValue(point.x), low: y.getPixelForValue(found[0]), high: y.getPixelForValue(found[1]) });
  }
  close();
}
