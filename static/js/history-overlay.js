// The overlay of a history chart: breaks, change points, baselines, annotations, commits without a
// valid trial, merges, and the pointer.
import { fade } from "./charts.js";
import { lowerBound } from "./history-data.js";
import { formatChange } from "./numbers.js";

const FLAG = 11;
// The heights above the area of a chart: for the flags, and for each row of labels.
const FLAG_ROW = FLAG + 7;
const LABEL_ROW = 15;
// What the label of a change point says about its state.
const STATES = {
  confirmed: " confirmed",
  small: " confirmed, small",
  refuted: " refuted",
  dismissed: " dismissed",
};

// Whether the vertical axis does not begin at zero; an axis of changes has no beginning.
export function isCut(chart) {
  return !chart.data.own.view.relative && chart.scales.y.min > 0;
}

export function loadedLines(config) {
  return config.lines.filter((line) => line.data);
}

// The vertical lines: breaks by a host or a definition, change points, and baselines.
export function verticalLines(chart) {
  const { config, view, colours } = chart.data.own;
  const ink = colours();
  const found = [];
  for (const line of loadedLines(config)) {
    const { data } = line;
    for (const { before, host, definition, bridge } of data.breaks) {
      const factor = bridge === null ? "" : ` ${formatChange(bridge - 1)}`;
      const causes = [
        host && `host: ${host.map(factTitle).join(", ") || "changed"}`,
        definition && "definition changed",
      ];
      found.push({
        x: data.rank[before] - 0.5,
        dash: host ? [5, 4] : [1, 3],
        ink: host ? ink.warn : ink.calm,
        label: causes.filter(Boolean).join("; ") + factor,
      });
    }
    if (data.baseline !== null)
      found.push({
        x: data.rank[data.baseline] - 0.5,
        dash: [],
        ink: ink.muted,
        label: "new baseline",
      });
    for (const each of data.changes) {
      const state = STATES[each.state] ?? "";
      const isReal = each.state === "confirmed" || each.state === "small";
      const isClosed = each.state === "refuted" || each.state === "dismissed";
      found.push({
        x: data.rank[each.at] - 0.5,
        dash: each.kind === "alert" || isReal ? [] : [6, 4],
        width: 2,
        ink: isClosed ? ink.muted : each.regressed ? ink.bad : ink.good,
        label: `${each.regressed ? "▼" : "▲"} ${formatChange(each.change)}${state}`,
      });
    }
  }
  const { first, last } = view.window();
  // Series of one host share its breaks.
  const unique = new Map(found.map((line) => [`${line.x} ${line.label}`, line]));
  return [...unique.values()]
    .filter(({ x }) => x >= first - 1 && x <= last + 1)
    .sort((a, b) => a.x - b.x);
}

// Whether the chart is one of several: it has no room for its name, or for many labels.
export function isSmall(chart) {
  return chart.height < 260;
}

function countLabelRows(chart) {
  return Math.min(chart.data.own.verticalLines.length, isSmall(chart) ? 1 : 3);
}

// The height that flags and labels need above the area of a chart.
export function heightAbove(chart) {
  return FLAG_ROW + countLabelRows(chart) * LABEL_ROW;
}

const factTitle = (fact) => fact.replace(/_(bytes|mhz|s)$/, "").replaceAll("_", " ");

export const overlay = {
  id: "overlay",
  afterDatasetsDraw(chart) {
    const {
      ctx,
      chartArea,
      scales: { x },
    } = chart;
    const { config, view, colours } = chart.data.own;
    const ink = colours();
    ctx.save();
    ctx.font = `12px ${ink.font}`;
    const visible = chart.data.own.verticalLines
      .map((line) => ({ line, at: x.getPixelForValue(line.x) }))
      .filter(({ at }) => at >= chartArea.left && at <= chartArea.right);
    const placed = placeLabels(chart, visible);
    for (const { line, at, top } of placed) {
      ctx.strokeStyle = line.ink;
      ctx.lineWidth = line.width ?? 1;
      ctx.setLineDash(line.dash);
      ctx.beginPath();
      ctx.moveTo(at, top ?? chartArea.top);
      ctx.lineTo(at, chartArea.bottom);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    // All lines come first: no line crosses the label of another.
    for (const label of placed) if (label.top !== undefined) drawLabel(ctx, label, ink);
    for (const line of loadedLines(config)) drawFoot(chart, line.data, ink);
    for (const flag of flagsOf(chart)) drawFlag(chart, flag, ink);
    if (isCut(chart)) drawCut(chart, ink);
    drawPointer(chart, view, ink);
    ctx.restore();
  },
};

// Two strokes across the foot of the axis.
function drawCut({ ctx, chartArea: { left, bottom } }, ink) {
  ctx.strokeStyle = ink.text;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  for (const up of [6, 11]) {
    ctx.moveTo(left - 5, bottom - up + 3);
    ctx.lineTo(left + 5, bottom - up - 3);
  }
  ctx.stroke();
}

// Adds the place of its label to each line: above the area, in the first row with room. A line
// without room has no label.
function placeLabels(chart, lines) {
  const { ctx, chartArea: area } = chart;
  const rows = Array.from({ length: countLabelRows(chart) }, () => []);
  return lines.map(({ line, at }) => {
    const width = ctx.measureText(line.label).width + 8;
    const left = Math.max(area.left, at + width > area.right ? at - width : at);
    const isFree = (other) => left >= other.left + other.width || left + width <= other.left;
    const row = rows.findIndex((labels) => labels.every(isFree));
    if (row < 0) return { line, at };
    rows[row].push({ left, width });
    return { line, at, left, width, top: area.top - FLAG_ROW - (row + 1) * LABEL_ROW };
  });
}

function drawLabel(ctx, { line, left, width, top }, ink) {
  ctx.fillStyle = ink.surface;
  ctx.fillRect(left + 2, top, width - 3, LABEL_ROW);
  ctx.fillStyle = line.ink;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.fillText(line.label, left + 4, top + 1);
}

// The flags of all annotations; those that would cover each other are one flag.
function flagsOf(chart) {
  const {
    chartArea,
    scales: { x },
  } = chart;
  const { config } = chart.data.own;
  const annotations = new Map(
    loadedLines(config).flatMap(({ data }) =>
      data.annotations.map((each) => [each.id, data.rank[each.at]]),
    ),
  );
  const found = [];
  for (const rank of [...annotations.values()].sort((a, b) => a - b)) {
    const at = x.getPixelForValue(rank),
      last = found.at(-1);
    if (at < chartArea.left - 1 || at > chartArea.right + 1) continue;
    if (last && at - last.at < FLAG + 2) last.count += 1;
    else found.push({ at, rank, count: 1 });
  }
  return found;
}

// The rank of the flag at a position of the canvas, or null.
export function flagAt(chart, x, y) {
  if (y > chart.chartArea.top + 4) return null;
  return flagsOf(chart).find(({ at }) => x >= at - 4 && x <= at + FLAG + 4)?.rank ?? null;
}

function drawFlag({ ctx, chartArea: { top, bottom } }, { at, count }, ink) {
  ctx.strokeStyle = ctx.fillStyle = ink.calm;
  ctx.lineWidth = 1;
  ctx.setLineDash([1, 4]);
  ctx.beginPath();
  ctx.moveTo(at, top);
  ctx.lineTo(at, bottom);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillRect(at - 0.75, top - FLAG - 4, 1.5, FLAG + 4);
  ctx.fillRect(at, top - FLAG - 4, FLAG, count > 1 ? FLAG + 1 : FLAG - 3);
  if (count === 1) return;
  ctx.fillStyle = ink.surface;
  ctx.font = `bold 10px ${ink.font}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillText(count > 9 ? "…" : String(count), at + FLAG / 2, top - FLAG / 2 - 3);
}

function drawFoot(chart, data, ink) {
  const {
    ctx,
    chartArea,
    scales: { x },
  } = chart;
  const inside = (i) => data.rank[i] >= x.min && data.rank[i] <= x.max;
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  ctx.fillStyle = ink.bad;
  let drawn = -Infinity;
  for (const i of data.empty) {
    const at = x.getPixelForValue(data.rank[i]);
    if (!inside(i) || at - drawn < 2) continue;
    ctx.fillText("✕", at, chartArea.bottom);
    drawn = at;
  }
  if (x.max - x.min > 400) return;
  ctx.fillStyle = ink.muted;
  for (const i of data.merges)
    if (inside(i) && data.value[i] !== null) {
      const at = x.getPixelForValue(data.rank[i]);
      ctx.beginPath();
      ctx.moveTo(at - 4, chartArea.bottom);
      ctx.lineTo(at, chartArea.bottom - 6);
      ctx.lineTo(at + 4, chartArea.bottom);
      ctx.fill();
    }
}

function drawPointer(chart, view, ink) {
  if (view.selection) {
    const {
      ctx,
      chartArea,
      scales: { x },
    } = chart;
    const [one, other] = view.selection.map((rank) => x.getPixelForValue(rank));
    ctx.fillStyle = fade(ink.calm, 0.2);
    ctx.fillRect(one, chartArea.top, other - one, chartArea.height);
  }
  if (view.pointer === null) return;
  const {
    ctx,
    chartArea,
    scales: { x, y },
  } = chart;
  const at = x.getPixelForValue(view.pointer);
  if (at < chartArea.left || at > chartArea.right) return;
  ctx.strokeStyle = ink.muted;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(at, chartArea.top);
  ctx.lineTo(at, chartArea.bottom);
  ctx.stroke();
  for (const { line, side, scale, borderColor } of chart.data.datasets) {
    if (side) continue;
    const i = lowerBound(line.data.rank, view.pointer);
    if (line.data.rank[i] !== view.pointer || line.data.value[i] === null) continue;
    ctx.fillStyle = borderColor;
    ctx.strokeStyle = ink.text;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.arc(at, y.getPixelForValue(scale(line.data.value[i])), 5, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
  }
}
