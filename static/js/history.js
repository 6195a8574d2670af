// The page of histories: fetches each line, draws the charts, and describes the point under the pointer.
import { darkScheme } from "./charts.js";
import { historyChart } from "./history-chart.js";
import { decodeHistory } from "./history-data.js";
import { bindInput } from "./history-input.js";
import { ViewOptions } from "./history-view-options.js";
import { formatChange, formatValue } from "./numbers.js";

const REST_MS = 150;
// Until then the first drawing waits for all lines. Each drawing takes a phone a tenth of a second.
const FIRST_DRAWING_MS = 1000;
const config = JSON.parse(document.getElementById("history-config").textContent);
const lines = config.charts.flatMap((chart) => chart.lines);
const unitOf = new Map(
  config.charts.flatMap((chart) => chart.lines.map((line) => [line, chart.unit])),
);
// Hash → what is known about the commit.
const commits = new Map();
let frame = 0;
let commitTimer = 0;
let addressTimer = 0;
let isRangeStale = false;
let isDrawn = false;

const view = new ViewOptions(lines, {
  relative: config.relative,
  onChange: () => requestDraw(true),
});
const charts = config.charts.map((chart) => {
  const box = document.querySelector(`[data-history="${CSS.escape(chart.metric)}"]`);
  const drawing = historyChart(box.querySelector("canvas"), chart, view);
  bindInput(box, drawing, view, { onPoint: pointAt, onSelect: select });
  return { box, ...drawing };
});

// Draws at most once per frame. `isNewRange`: the range changed, not only the pointer.
function requestDraw(isNewRange) {
  isRangeStale ||= isNewRange;
  if (frame) return;
  frame = requestAnimationFrame(() => {
    for (const { chart, update } of charts) {
      if (isRangeStale) update();
      else chart.draw();
    }
    showPointer();
    if (isRangeStale) scheduleAddress();
    frame = 0;
    isRangeStale = false;
  });
}

// Browsers reject a change of the URL in every frame.
function scheduleAddress() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => view.writeAddress(), REST_MS);
}

function pointAt(rank) {
  if (rank === null) view.pointer = null;
  else view.movePointer(rank);
  requestDraw(false);
}

// States of a change point whose name says less than these words.
const STATES = {
  open: "not confirmed",
  confirming: "being measured again",
  small: "confirmed, small",
};

// A point of a line in one line of text.
function describePoint(line, index) {
  const { data } = line;
  const value = data.value[index],
    unit = unitOf.get(line);
  const annotations = (data.annotationsAt.get(index) ?? []).map(
    ({ text, author }) => `⚑ ${author ? `${author}: ` : ""}${text}`,
  );
  if (value === null)
    return [`✕ no valid trial, ${data.invalid[index]} excluded`, ...annotations].join(" · ");
  const factor = data.halfWidth[index];
  const interval =
    factor === null
      ? ""
      : ` (${formatValue(value / factor, unit)} to ${formatValue(value * factor, unit)})`;
  const parts = [
    formatValue(value, unit) + interval,
    `${data.trials[index]} trial${data.trials[index] === 1 ? "" : "s"}`,
  ];
  if (data.suspect[index]) parts.push(`! ${data.suspect[index]} suspect`);
  if (data.invalid[index]) parts.push(`✕ ${data.invalid[index]} excluded`);
  if (data.outlier.has(index)) parts.push("outlier");
  const change = data.changes.find(({ at }) => at === index);
  if (change)
    parts.push(
      `${change.regressed ? "▼ regressed" : "▲ improved"} ${formatChange(change.change)}, ${STATES[change.state] ?? change.state}`,
    );
  return [...parts, ...annotations].join(" · ");
}

function showPointer() {
  const descriptions = [];
  for (const line of lines) {
    const index = view.pointer === null || !line.data ? -1 : view.indexAt(line, view.pointer);
    const description = index >= 0 ? describePoint(line, index) : "";
    document.querySelector(`[data-line="${line.number}"] .description`).textContent = description;
    if (description)
      descriptions.push(`${lines.length > 1 ? `${line.label}: ` : ""}${description}`);
  }
  const sha = view.pointer === null ? "" : view.shaAt(view.pointer);
  const commit = commits.get(sha);
  const element = document.getElementById("pointed-commit");
  element.querySelector("code").textContent = sha;
  element.querySelector("span").textContent = commit
    ? `${commit.subject} · ${commit.author}, ${commit.committed_at.slice(0, 10)}`
    : "";
  element.dataset.empty = String(!sha);
  for (const { box } of charts) {
    box.setAttribute("aria-valuemax", String(view.end));
    box.setAttribute("aria-valuenow", String(view.pointer ?? view.end));
    box.setAttribute(
      "aria-valuetext",
      sha
        ? `commit ${sha}${commit ? `, ${commit.subject}` : ""}: ${descriptions.join("; ")}`
        : "no commit chosen",
    );
  }
  clearTimeout(commitTimer);
  if (sha && !commit) commitTimer = setTimeout(() => fetchCommit(sha), REST_MS);
}

async function fetchCommit(sha) {
  const line = view.loadedLines.find(({ data }) => data.commit.includes(sha));
  const answer = await fetch(line.commit.replace("SHA", sha));
  if (!answer.ok) return;
  commits.set(sha, await answer.json());
  showPointer();
}

async function select(rank) {
  view.movePointer(rank);
  view.isSelected = true;
  requestDraw(true);
  view.writeAddress();
  const sha = view.shaAt(view.pointer);
  const back = encodeURIComponent(location.pathname + location.search);
  const addresses = view.loadedLines
    .filter(({ data }) => data.commit.includes(sha))
    .map(
      (line) =>
        `${line.point.replace("SHA", sha)}?panel=1&branch=${encodeURIComponent(line.branch)}&back=${back}`,
    );
  const answers = await Promise.all(addresses.map((address) => fetch(address)));
  const panels = await Promise.all(
    answers.filter((answer) => answer.ok).map((answer) => answer.text()),
  );
  document.getElementById("point").innerHTML = panels.join("");
}

const actions = {
  in: () => view.zoom(0.6),
  out: () => view.zoom(1 / 0.6),
  all: () => view.showAll(),
  older: () => view.pan(-0.5),
  newer: () => view.pan(0.5),
  newest: () => view.showRange(view.end - 100, view.end),
};
for (const button of document.querySelectorAll("button[data-action]"))
  button.addEventListener("click", () => actions[button.dataset.action]());

async function load(line) {
  const answer = await fetch(line.data_url);
  if (!answer.ok) throw new Error(`${answer.status} for ${line.label}`);
  line.data = decodeHistory(await answer.json());
  view.updateAxis();
  if (isDrawn) requestDraw(true);
}

async function loadAll() {
  const loaded = Promise.allSettled(lines.map(load));
  await Promise.race([loaded, new Promise((end) => setTimeout(end, FIRST_DRAWING_MS))]);
  isDrawn = true;
  requestDraw(true);
  const results = await loaded;
  document.getElementById("not-loaded").hidden = results.every(
    ({ status }) => status === "fulfilled",
  );
  view.requested = {};
  if (view.isSelected) select(view.pointer);
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      for (const { box } of charts) box.querySelector("canvas").dataset.drawn = "true";
    }),
  );
}

darkScheme.addEventListener("change", () => {
  for (const { restyle } of charts) restyle();
});
loadAll();
