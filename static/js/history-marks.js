// What is marked on a chart of a history: hosts, definitions, levels, where it begins anew, notes,
// commits without a valid trial, merges, and the point that is looked at.
import { lowerBound, shownChange } from "./history-data.js";

const FLAG = 11;

export const faint = (ink, share) => ink.replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`);

export function known(config) {
  return config.lines.filter((line) => line.data);
}

// What is marked between and at points: hosts, definitions, levels, where a history begins anew.
export function marksOf(chart) {
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
  return [...once.values()].filter((mark) => mark.x >= first - 1 && mark.x <= last + 1).sort((a, b) => a.x - b.x);
}

const words_ = (fact) => fact.replace(/_(bytes|mhz|s)$/, "").replaceAll("_", " ");

export const marks = {
  id: "marks",
  afterDatasetsDraw(chart) {
    const { ctx, chartArea, scales: { x } } = chart;
    const { config, look, colours } = chart.data.own;
    const ink = colours();
    ctx.save();
    ctx.font = `12px ${ink.font}`;
    const taken = [];
    const seen = (chart.data.own.marks ?? [])
      .map((mark) => ({ mark, at: x.getPixelForValue(mark.x) }))
      .filter(({ at }) => at >= chartArea.left && at <= chartArea.right);
    for (const { mark, at } of seen) {
      ctx.strokeStyle = mark.ink;
      ctx.lineWidth = mark.width ?? 1;
      ctx.setLineDash(mark.dash);
      ctx.beginPath();
      ctx.moveTo(at, chartArea.top);
      ctx.lineTo(at, chartArea.bottom);
      ctx.stroke();
    }
    // No line goes through the words of another.
    for (const { mark, at } of seen) label(ctx, mark, at, chartArea, taken, ink);
    ctx.setLineDash([]);
    for (const line of known(config)) atTheFoot(chart, line.data, ink);
    for (const flag of flagsOf(chart)) drawFlag(chart, flag, ink);
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
  ctx.fillStyle = faint(ink.surface, 0.95);
  ctx.fillRect(left + 2, area.top + 1 + row * 15, width - 3, 15);
  ctx.fillStyle = mark.ink;
  ctx.fillText(mark.label, left + 4, area.top + 2 + row * 15);
}

// Notes of all lines, those that would cover each other as one.
function flagsOf(chart) {
  const { chartArea, scales: { x } } = chart;
  const { config } = chart.data.own;
  const notes = new Map(known(config).flatMap(({ data }) => data.annotations.map((each) => [each.id, data.rank[each.at]])));
  const found = [];
  for (const rank of [...notes.values()].sort((a, b) => a - b)) {
    const at = x.getPixelForValue(rank), last = found.at(-1);
    if (at < chartArea.left - 1 || at > chartArea.right + 1) continue;
    if (last && at - last.at < FLAG + 2) last.count += 1;
    else found.push({ at, rank, count: 1 });
  }
  return found;
}

// The rank of the flag at a place of the canvas, or null.
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

function atTheFoot(chart, data, ink) {
  const { ctx, chartArea, scales: { x } } = chart;
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
