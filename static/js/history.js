// The page of histories: fetches each line, draws the charts, and tells of the point looked at.
import { historyChart } from "./history-chart.js";
import { decoded, shown, shownChange, unitFor } from "./history-data.js";
import { hold } from "./history-hands.js";
import { Look } from "./history-look.js";

const REST_MS = 150;
const config = JSON.parse(document.getElementById("history-config").textContent);
const lines = config.charts.flatMap((chart) => chart.lines);
const unitOf = new Map(config.charts.flatMap((chart) => chart.lines.map((line) => [line, chart.unit])));
const facts = new Map();
let frame = 0, resting = 0, keeping = 0, stale = false;

const look = new Look(lines, { relative: config.relative, changed: () => draw() });
const charts = config.charts.map((chart) => {
  const box = document.querySelector(`[data-history="${CSS.escape(chart.metric)}"]`);
  const drawn = historyChart(box.querySelector("canvas"), chart, look);
  hold(box, drawn, look, { pointed, chosen });
  return { box, ...drawn };
});

// At most once a frame; `moved`: the window is another one, not only the pointer.
function paint(moved) {
  stale ||= moved;
  frame ||= requestAnimationFrame(() => {
    for (const { chart, update } of charts) {
      if (stale) update();
      else chart.draw();
    }
    tell();
    if (stale) rest();
    frame = 0;
    stale = false;
  });
}

const draw = () => paint(true);

// Browsers refuse to write the address at each frame.
function rest() {
  clearTimeout(keeping);
  keeping = setTimeout(() => look.keep(), REST_MS);
}

function pointed(rank) {
  if (rank === null) look.pointer = null;
  else look.point(rank);
  paint(false);
}

function inUnit(line, value, all) {
  const [size, unit] = unitFor(unitOf.get(line), all);
  return `${shown(value / size)} ${unit}`.trim();
}

// One line of words on a point of a line.
function words(line, index) {
  const { data } = line;
  const value = data.value[index];
  const notes = (data.written.get(index) ?? []).map(({ text, author }) => `⚑ ${author ? `${author}: ` : ""}${text}`);
  if (value === null) return [`✕ no valid trial, ${data.invalid[index]} left out`, ...notes].join(" · ");
  const reach = data.reach[index];
  const parts = [inUnit(line, value, value)];
  if (reach !== null) parts[0] += ` (${inUnit(line, value / reach, value)} to ${inUnit(line, value * reach, value)})`;
  parts.push(`${data.n[index]} trial${data.n[index] === 1 ? "" : "s"}`);
  if (data.suspect[index]) parts.push(`! ${data.suspect[index]} suspect`);
  if (data.invalid[index]) parts.push(`✕ ${data.invalid[index]} left out`);
  if (data.outlier.has(index)) parts.push("outlier");
  const change = data.changes.find((each) => each.at === index);
  if (change) parts.push(`${change.regressed ? "▼ regressed" : "▲ improved"} ${shownChange(change.change)}, ${change.state}`);
  return [...parts, ...notes].join(" · ");
}

function tell() {
  const told = [];
  for (const line of lines) {
    const index = look.pointer === null || !line.data ? -1 : look.indexAt(line, look.pointer);
    const said = index >= 0 ? words(line, index) : "";
    document.querySelector(`[data-line="${line.number}"] .said`).textContent = said;
    if (said) told.push(`${lines.length > 1 ? `${line.label}: ` : ""}${said}`);
  }
  const sha = look.pointer === null ? "" : look.shaAt(look.pointer);
  const where = document.getElementById("pointed");
  const known = facts.get(sha);
  where.querySelector("code").textContent = sha;
  where.querySelector("span").textContent = known ? `${known.subject} · ${known.author}, ${known.committed_at.slice(0, 10)}` : "";
  where.dataset.empty = String(!sha);
  for (const { box } of charts) {
    box.setAttribute("aria-valuemax", String(look.end));
    box.setAttribute("aria-valuenow", String(look.pointer ?? look.end));
    box.setAttribute("aria-valuetext", sha ? `commit ${sha}${known ? `, ${known.subject}` : ""}: ${told.join("; ")}` : "no commit chosen");
  }
  clearTimeout(resting);
  if (sha && !known) resting = setTimeout(() => ask(sha), REST_MS);
}

// Who has the commit of a hash that was pointed at.
function lineOf(sha) {
  return look.known.find((line) => line.data.commit.includes(sha));
}

async function ask(sha) {
  const line = lineOf(sha);
  const answer = await fetch(line.commit.replace("SHA", sha));
  if (!answer.ok) return;
  facts.set(sha, await answer.json());
  tell();
}

async function chosen(rank) {
  look.point(rank);
  look.chosen = true;
  draw();
  look.keep();
  const sha = look.shaAt(look.pointer);
  const panels = look.known.filter((line) => line.data.commit.includes(sha));
  const here = encodeURIComponent(location.pathname + location.search);
  const answers = await Promise.all(panels.map((line) => fetch(`${line.point.replace("SHA", sha)}?panel=1&branch=${encodeURIComponent(line.branch)}&back=${here}`)));
  const texts = await Promise.all(answers.filter((answer) => answer.ok).map((answer) => answer.text()));
  document.getElementById("point").innerHTML = texts.join("");
}

const acts = {
  in: () => look.zoom(0.6), out: () => look.zoom(1 / 0.6), all: () => look.all(),
  older: () => look.pan(-0.5), newer: () => look.pan(0.5), newest: () => look.show(look.end - 100, look.end),
};
for (const button of document.querySelectorAll("button[data-act]")) button.addEventListener("click", () => acts[button.dataset.act]());

async function load(line) {
  const answer = await fetch(line.data_url);
  if (!answer.ok) throw new Error(`${answer.status} for ${line.label}`);
  line.data = decoded(await answer.json());
  look.arrived();
  draw();
}

async function loadAll() {
  const done = await Promise.allSettled(lines.map(load));
  const failed = done.filter((each) => each.status === "rejected");
  document.getElementById("not-loaded").hidden = !failed.length;
  look.asked = {};
  if (look.chosen) chosen(look.pointer);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    for (const { box } of charts) box.querySelector("canvas").dataset.drawn = "true";
  }));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const { restyle } of charts) restyle(); });
loadAll();
