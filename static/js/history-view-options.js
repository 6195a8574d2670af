// The view options of a history: the range of the axis that is shown, and the point under the
// pointer. Both are in the URL, so that a view can be shared.
import { axisOf, lowerBound } from "./history-data.js";

const LEAST_SPAN = 4;
// Ranges are sums of fractions: 58.99999 is 59.
const EPSILON = 1e-6;
const DAY_MS = 86_400_000;

export class ViewOptions {
  constructor(lines, { relative, onChange }) {
    this.lines = lines;
    this.relative = relative;
    this.onChange = onChange;
    this.axis = { positions: [], rank: new Map() };
    this.range = null;
    this.pointer = null;
    this.isSelected = false;
    const query = new URLSearchParams(location.search);
    this.requested = { from: query.get("from"), to: query.get("to"), at: query.get("at") };
  }

  get loadedLines() {
    return this.lines.filter((line) => line.data);
  }

  get end() {
    return Math.max(1, this.axis.positions.length - 1);
  }

  // The ranks that are shown; without a range all of them.
  window() {
    return this.range ?? { first: 0, last: this.end };
  }

  // After another line was loaded the axis has more positions; the range and the pointer stay on
  // their commits.
  updateAxis() {
    const ends =
      this.range &&
      [this.range.first, this.range.last].map((rank) => this.axis.positions[Math.round(rank)]);
    const pointed = this.pointer === null ? null : this.axis.positions[this.pointer];
    this.axis = axisOf(this.loadedLines.map((line) => line.data));
    for (const { data } of this.loadedLines) {
      data.rank = data.position.map((position) => this.axis.rank.get(position));
      data.levels.clear();
    }
    if (ends) this.showRange(...ends.map((position) => this.axis.rank.get(position)), false);
    if (pointed !== null) this.pointer = this.axis.rank.get(pointed);
    this.applyAddress();
  }

  // Applies what the address requests, as soon as its commits are known.
  applyAddress() {
    const { from, to, at } = this.requested;
    const [first, last, pointed] = [from, to, at].map((sha) => this.rankOf(sha));
    if (first !== null && last !== null) {
      this.showRange(first, last, false);
      this.requested.from = this.requested.to = null;
    }
    if (pointed !== null) {
      this.pointer = pointed;
      this.requested.at = null;
      this.isSelected = true;
    }
  }

  rankOf(sha) {
    if (!sha) return null;
    for (const { data } of this.loadedLines) {
      const index = data.commit.findIndex(
        (commit) => commit.startsWith(sha) || sha.startsWith(commit),
      );
      if (index >= 0) return data.rank[index];
    }
    return null;
  }

  // The index of a line's point at a rank, or -1.
  indexAt(line, rank) {
    const index = lowerBound(line.data.rank, rank);
    return line.data.rank[index] === rank ? index : -1;
  }

  shaAt(rank) {
    for (const line of this.loadedLines) {
      const index = this.indexAt(line, rank);
      if (index >= 0) return line.data.commit[index];
    }
    return "";
  }

  // The hash of a commit and its date, as two lines of a tick.
  nameAt(rank) {
    if (!Number.isInteger(rank)) return "";
    for (const line of this.loadedLines) {
      const index = this.indexAt(line, rank);
      if (index >= 0) {
        const date = new Date(line.data.day[index] * DAY_MS).toISOString().slice(0, 10);
        return [line.data.commit[index].slice(0, 7), date];
      }
    }
    return "";
  }

  showRange(first, last, notify = true) {
    const span = Math.min(this.end, Math.max(LEAST_SPAN, last - first));
    const middle = (first + last) / 2;
    const start = Math.min(Math.max(0, middle - span / 2), this.end - span);
    this.range = span >= this.end ? null : { first: start, last: start + span };
    if (notify) this.onChange();
  }

  showAll() {
    this.range = null;
    this.onChange();
  }

  zoom(factor, centre = this.centre) {
    const { first, last } = this.window();
    this.showRange(centre - (centre - first) * factor, centre + (last - centre) * factor);
  }

  pan(share) {
    const { first, last } = this.window();
    const step = (last - first) * share;
    this.showRange(first + step, last + step);
  }

  get centre() {
    const { first, last } = this.window();
    const isVisible = this.pointer !== null && this.pointer >= first && this.pointer <= last;
    return isVisible ? this.pointer : (first + last) / 2;
  }

  movePointer(rank) {
    this.pointer = Math.min(Math.max(0, Math.round(rank)), this.axis.positions.length - 1);
  }

  // Moves the pointer; the range follows where it has to.
  step(by, start = this.pointer) {
    const { first, last } = this.window();
    const from = start ?? (by > 0 ? Math.ceil(first) - 1 : Math.floor(last) + 1);
    this.movePointer(from + by);
    const beyond = this.pointer < first ? this.pointer - first : Math.max(0, this.pointer - last);
    if (beyond) this.showRange(first + beyond, last + beyond);
  }

  // To the next (or previous) commit with an event: a change, an annotation, a break, a baseline.
  stepToEvent(by) {
    const from = this.pointer ?? (by > 0 ? -1 : this.end + 1);
    const ranks = this.loadedLines.flatMap(({ data }) =>
      [
        ...data.changes.map(({ at }) => at),
        ...data.annotations.map(({ at }) => at),
        ...data.breaks.map(({ before }) => before),
        ...(data.baseline === null ? [] : [data.baseline]),
      ].map((index) => data.rank[index]),
    );
    const ahead = ranks.filter((rank) => (rank - from) * by > 0);
    if (ahead.length) this.step((by > 0 ? Math.min(...ahead) : Math.max(...ahead)) - from, from);
  }

  // Writes the options into the URL, and into the links and fields that contain them.
  writeAddress() {
    if (this.requested.from || this.requested.to) return;
    const options = {
      from: this.range && this.shaAt(Math.ceil(this.range.first - EPSILON)),
      to: this.range && this.shaAt(Math.floor(this.range.last + EPSILON)),
      at: this.isSelected && this.pointer !== null ? this.shaAt(this.pointer) : null,
    };
    history.replaceState(null, "", withOptions(location.href, options));
    for (const link of document.querySelectorAll("a[data-view-options]"))
      link.href = withOptions(link.href, { ...options, at: null });
    for (const input of document.querySelectorAll("input[data-view-options]")) {
      input.value = options[input.name] ?? "";
      input.disabled = !input.value;
    }
  }
}

function withOptions(address, options) {
  const url = new URL(address);
  for (const [name, value] of Object.entries(options)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  return url.toString();
}
