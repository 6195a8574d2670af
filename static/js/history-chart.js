// One chart of a history: a line a series with the band of its intervals, and what is marked.
import { colour } from "./colour.js";
import { drawable, lowerBound, shownChange, unitFor } from "./history-data.js";

const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [1, 3]];
const SHAPES = ["circle", "rect", "triangle", "rectRot", "star", "cross"];

const faint = (ink, share) => ink.replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`);

function inks(lines) {
  return {
    lines: lines.map(({ number }) => colour(`--series-${number}`)),
    text: colour("--text"), muted: colour("--muted"), grid: colour("--grid"), surface: colour("--surface"),
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
      layout: { padding: { top: 14 } },
      plugins: { legend: { display: false }, tooltip: { enabled: false }, decimation: { enabled: false } },
      scales: {
        x: { type: "linear", bounds: "data", ticks: { maxRotation: 0, autoSkipPadding: 14, includeBounds: false, precision: 0 } },
        y: { grace: "4%", title: { display: true } },
      },
    },
    plugins: [bands, marks],
  });
  return {
    chart,
    restyle() { colours = inks(config.lines); update(chart); },
    update() { update(chart); },
  };
}

function known(config) {
  return config.lines.filter((line) => line.data);
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
  const dense = last - first > 160;
  chart.data.datasets = known(config).flatMap((line) => {
    const place = config.lines.indexOf(line), own = ink.lines[place], { data } = line;
    const scale = of(line);
    const points = drawable(data, look.axis, first, last, columns, scale);
    const side = [...data.side].filter((i) => data.value[i] !== null && data.rank[i] >= first && data.rank[i] <= last)
      .map((i) => ({ x: data.rank[i], y: scale(data.value[i]), index: i }));
    const isDoubtful = (point) => point.index >= 0 && (data.suspect[point.index] > 0 || data.outlier.has(point.index));
    return [
      { line, scale, data: points, borderColor: own, borderWidth: dense ? 1.5 : 2, borderDash: dense ? [] : DASHES[place % DASHES.length],
        pointStyle: points.map((p) => (isDoubtful(p) ? "triangle" : SHAPES[place % SHAPES.length])),
        pointBackgroundColor: points.map((p) => (isDoubtful(p) ? ink.surface : own)), pointBorderColor: own,
        pointRadius: points.map((p) => (isDoubtful(p) ? (dense ? 3.5 : 5.5) : dense ? 0 : 3)) },
      { line, side: true, data: side, showLine: false, pointStyle: "circle", pointRadius: 2.5, pointBackgroundColor: ink.surface, pointBorderColor: own },
    ];
  });
  const { x, y } = chart.options.scales;
  Object.assign(x, { min: first - 0.5, max: last + 0.5 });
  x.grid = { color: ink.grid };
  y.grid = { color: ink.grid };
  x.ticks.color = y.ticks.color = y.title.color = ink.muted;
  x.ticks.callback = (rank) => look.nameAt(rank);
  y.title.text = unit;
  y.title.display = Boolean(unit);
  Object.assign(y, reachOf(chart, first, last));
  chart.update("none");
}

// The axis holds the bands, but no band that would leave the line no room.
function reachOf(chart, first, last) {
  let low = Infinity, high = -Infinity, bandLow = Infinity, bandHigh = -Infinity;
  for (const { data, line, scale, side } of chart.data.datasets) {
    for (const { x, y, index } of data) {
      if (Number.isNaN(y) || x < first - 1 || x > last + 1) continue;
      low = Math.min(low, y);
      high = Math.max(high, y);
      const reach = side ? null : line.data.reach[index];
      if (reach === null || reach === undefined) continue;
      bandLow = Math.min(bandLow, scale(line.data.value[index] / reach));
      bandHigh = Math.max(bandHigh, scale(line.data.value[index] * reach));
    }
  }
  if (low > high) return { suggestedMin: undefined, suggestedMax: undefined };
  const room = Math.max(high - low, Math.abs(high) * 0.02);
  return { suggestedMin: Math.max(Math.min(low, bandLow), low - room), suggestedMax: Math.min(Math.max(high, bandHigh), high + room) };
}

const bands = {
  id: "bands",
  beforeDatasetsDraw(chart) {
    const { ctx, chartArea, scales: { x, y } } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(chartArea.left, chartArea.top, chartArea.width, chartArea.height);
    ctx.clip();
    for (const { data, line, scale, side, borderColor } of chart.data.datasets) {
      if (side) continue;
      ctx.fillStyle = faint(borderColor, 0.16);
      let run = [];
      const close = () => {
        if (run.length === 1) run.push({ ...run[0], x: run[0].x + 3 });
        if (run.length) {
          ctx.beginPath();
          run.forEach(({ x, high }, i) => (i ? ctx.lineTo(x, high) : ctx.moveTo(x, high)));
          run.toReversed().forEach(({ x, low }) => ctx.lineTo(x, low));
          ctx.fill();
        }
        run = [];
      };
      for (const point of data) {
        const reach = point.index < 0 ? null : line.data.reach[point.index];
        if (reach === null) { close(); continue; }
        const value = line.data.value[point.index];
        run.push({ x: x.getPixelForValue(point.x), low: y.getPixelForValue(scale(value / reach)), high: y.getPixelForValue(scale(value * reach)) });
      }
      close();
    }
    ctx.restore();
  },
};

// What is marked between and at points: hosts, definitions, levels, where a history begins anew.
function marksOf(chart) {
  const { config, look, colours } = chart.data.own;
  const ink = colours();
  const found = [];
  for (const line of known(config)) {
    const { data } = line;
    for (const { before, host, definition, bridge } of data.marks) {
      const factor = bridge === null ? "" : ` ${shownChange(bridge - 1)}`;
      const words = [host && `host: ${host.map(words_).join(", ") || "changed"}`, definition && "measured otherwise"];
      found.push({ x: data.rank[before] - 0.5, dash: host ? [5, 4] : [1, 3], ink: host ? ink.warn : ink.calm, label: words.filter(Boolean).join("; ") + factor });
    }
    if (data.baseline !== null) found.push({ x: data.rank[data.baseline] - 0.5, dash: [], ink: ink.muted, label: "begins anew" });
    for (const each of data.changes) {
      const judged = { refuted: " refuted", dismissed: " dismissed", confirmed: " confirmed" }[each.state] ?? "";
      const over = each.state === "refuted" || each.state === "dismissed";
      found.push({
        x: data.rank[each.at] - 0.5, dash: each.kind === "alert" || each.state === "confirmed" ? [] : [6, 4], width: 2,
        ink: over ? ink.muted : each.regressed ? ink.bad : ink.good,
        label: `${each.regressed ? "▼" : "▲"} ${shownChange(each.change)}${judged}`,
      });
    }
  }
  const { first, last } = look.window();
  // Lines of one host share its marks.
  const once = new Map(found.map((mark) => [`${mark.x} ${mark.label}`, mark]));
  return [...once.values()].filter((mark) => mark.x >= first - 1 && mark.x <= last + 1);
}

const words_ = (fact) => fact.replace(/_(bytes|mhz|s)$/, "").replaceAll("_", " ");

const marks = {
  id: "marks",
  afterDatasetsDraw(chart) {
    const { ctx, chartArea, scales: { x } } = chart;
    const { config, look, colours } = chart.data.own;
    const ink = colours();
    ctx.save();
    ctx.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const taken = [];
    for (const mark of marksOf(chart).sort((a, b) => a.x - b.x)) {
      const at = x.getPixelForValue(mark.x);
      if (at < chartArea.left || at > chartArea.right) continue;
      ctx.strokeStyle = ctx.fillStyle = mark.ink;
      ctx.lineWidth = mark.width ?? 1;
      ctx.setLineDash(mark.dash);
      ctx.beginPath();
      ctx.moveTo(at, chartArea.top);
      ctx.lineTo(at, chartArea.bottom);
      ctx.stroke();
      label(ctx, mark, at, chartArea, taken, ink);
    }
    ctx.setLineDash([]);
    for (const line of known(config)) atTheFoot(chart, line.data, ink);
    pointer(chart, look, ink);
    ctx.restore();
  },
};

// Beside the line where there is room in one of three rows; else the line stands alone.
function label(ctx, mark, at, area, taken, ink) {
  const width = ctx.measureText(mark.label).width + 8;
  const left = Math.max(area.left, at + width > area.right ? at - width : at);
  const row = [0, 1, 2].find((each) => !taken.some((t) => t.row === each && left < t.right && left + width > t.left));
  if (row === undefined) return;
  taken.push({ row, left, right: left + width });
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  // Readable upon the curve, too.
  ctx.fillStyle = faint(ink.surface, 0.85);
  ctx.fillRect(left + 2, area.top + 1 + row * 15, width - 3, 15);
  ctx.fillStyle = mark.ink;
  ctx.fillText(mark.label, left + 4, area.top + 2 + row * 15);
}

function atTheFoot(chart, data, ink) {
  const { ctx, chartArea, scales: { x } } = chart;
  const inside = (i) => data.rank[i] >= x.min && data.rank[i] <= x.max;
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  ctx.fillStyle = ink.bad;
  data.value.forEach((value, i) => {
    if (value === null && inside(i)) ctx.fillText("✕", x.getPixelForValue(data.rank[i]), chartArea.bottom);
  });
  if (x.max - x.min > 400) return;
  ctx.fillStyle = ink.muted;
  for (const i of data.merges) if (inside(i) && data.value[i] !== null) {
    const at = x.getPixelForValue(data.rank[i]);
    ctx.beginPath();
    ctx.moveTo(at - 4, chartArea.bottom);
    ctx.lineTo(at, chartArea.bottom - 6);
    ctx.lineTo(at + 4, chartArea.bottom);
    ctx.fill();
  }
}

function pointer(chart, look, ink) {
  if (look.selection) {
    const { ctx, chartArea, scales: { x } } = chart;
    const [one, other] = look.selection.map((rank) => x.getPixelForValue(rank));
    ctx.fillStyle = faint(ink.calm, 0.2);
    ctx.fillRect(one, chartArea.top, other - one, chartArea.height);
  }
  if (look.pointer === null) return;
  const { ctx, chartArea, scales: { x, y } } = chart;
  const at = x.getPixelForValue(look.pointer);
  if (at < chartArea.left || at > chartArea.right) return;
  ctx.strokeStyle = ink.muted;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(at, chartArea.top);
  ctx.lineTo(at, chartArea.bottom);
  ctx.stroke();
  for (const { line, side, scale, borderColor } of chart.data.datasets) {
    if (side) continue;
    const i = lowerBound(line.data.rank, look.pointer);
    if (line.data.rank[i] !== look.pointer || line.data.value[i] === null) continue;
    ctx.fillStyle = borderColor;
    ctx.strokeStyle = ink.text;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.arc(at, y.getPixelForValue(scale(line.data.value[i])), 5, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
  }
}
