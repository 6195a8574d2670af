// What of a history is looked at: a window of the axis, and the point under the pointer; both are
// in the address, so that a look can be sent to somebody.
import { axisOf, lowerBound } from "./history-data.js";

const LEAST = 4;
// Windows are sums of fractions: 58.99999 is 59.
const HAIR = 1e-6;

export class Look {
  constructor(lines, { relative, changed }) {
    this.lines = lines;
    this.relative = relative;
    this.changed = changed;
    this.axis = { places: [], rank: new Map() };
    this.reach = null;
    this.pointer = null;
    const asked = new URLSearchParams(location.search);
    this.asked = { from: asked.get("from"), to: asked.get("to"), at: asked.get("at") };
  }

  get known() { return this.lines.filter((line) => line.data); }

  get end() { return Math.max(1, this.axis.places.length - 1); }

  // The ranks that are shown, as far as they have to be to show something.
  window() { return this.reach ?? { first: 0, last: this.end }; }

  // After another line has come the axis has more places: what is shown stays what it was.
  arrived() {
    const places = this.reach && [this.reach.first, this.reach.last].map((rank) => this.axis.places[Math.round(rank)]);
    const under = this.pointer === null ? null : this.axis.places[this.pointer];
    this.axis = axisOf(this.known.map((line) => line.data));
    for (const { data } of this.known) {
      data.rank = data.place.map((place) => this.axis.rank.get(place));
      data.levels.clear();
    }
    if (places) this.show(...places.map((place) => this.axis.rank.get(place)), false);
    if (under !== null) this.pointer = this.axis.rank.get(under);
    this.take();
  }

  // What the address asks for, once its commits are known.
  take() {
    const [from, to, at] = [this.asked.from, this.asked.to, this.asked.at].map((sha) => this.rankOf(sha));
    if (from !== null && to !== null) {
      this.show(from, to, false);
      this.asked.from = this.asked.to = null;
    }
    if (at !== null) {
      this.pointer = at;
      this.asked.at = null;
      this.chosen = true;
    }
  }

  rankOf(sha) {
    if (!sha) return null;
    for (const { data } of this.known) {
      const index = data.commit.findIndex((each) => each.startsWith(sha) || sha.startsWith(each));
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
    for (const line of this.known) {
      const index = this.indexAt(line, rank);
      if (index >= 0) return line.data.commit[index];
    }
    return "";
  }

  nameAt(rank) { return Number.isInteger(rank) ? this.shaAt(rank).slice(0, 7) : ""; }

  show(first, last, keep = true) {
    const span = Math.min(this.end, Math.max(LEAST, last - first));
    const middle = (first + last) / 2;
    const start = Math.min(Math.max(0, middle - span / 2), this.end - span);
    this.reach = span >= this.end ? null : { first: start, last: start + span };
    if (keep) this.changed();
  }

  zoom(factor, about = this.middle) {
    const { first, last } = this.window();
    this.show(about - (about - first) * factor, about + (last - about) * factor);
  }

  pan(share) {
    const { first, last } = this.window();
    const step = (last - first) * share;
    this.show(first + step, last + step);
  }

  all() {
    this.reach = null;
    this.changed();
  }

  get middle() {
    const { first, last } = this.window();
    const inside = this.pointer !== null && this.pointer >= first && this.pointer <= last;
    return inside ? this.pointer : (first + last) / 2;
  }

  point(rank) {
    this.pointer = Math.min(Math.max(0, Math.round(rank)), this.axis.places.length - 1);
  }

  // To another point; the window follows where it has to.
  step(by, start = this.pointer) {
    const { first, last } = this.window();
    const from = start ?? (by > 0 ? Math.ceil(first) - 1 : Math.floor(last) + 1);
    this.point(from + by);
    const over = this.pointer < first ? this.pointer - first : Math.max(0, this.pointer - last);
    if (over) this.show(first + over, last + over);
  }

  // To the next commit (or the one before) at which something is marked: a change, a note, a host.
  stepToMark(by) {
    const from = this.pointer ?? (by > 0 ? -1 : this.end + 1);
    const ranks = this.known.flatMap(({ data }) => [
      ...data.changes.map(({ at }) => at), ...data.annotations.map(({ at }) => at), ...data.marks.map(({ before }) => before),
      ...(data.baseline === null ? [] : [data.baseline]),
    ].map((index) => data.rank[index]));
    const beyond = ranks.filter((rank) => (rank - from) * by > 0);
    if (beyond.length) this.step((by > 0 ? Math.min(...beyond) : Math.max(...beyond)) - from, from);
  }

  // Writes the look into the address and into the links and forms that keep it.
  keep() {
    if (this.asked.from || this.asked.to) return;
    const told = {
      from: this.reach && this.shaAt(Math.ceil(this.reach.first - HAIR)),
      to: this.reach && this.shaAt(Math.floor(this.reach.last + HAIR)),
      at: this.chosen && this.pointer !== null ? this.shaAt(this.pointer) : null,
    };
    history.replaceState(null, "", this.address(location.href, told));
    for (const link of document.querySelectorAll("a[data-look]")) link.href = this.address(link.href, { ...told, at: null });
    for (const input of document.querySelectorAll("input[data-look]")) {
      input.value = told[input.name] ?? "";
      input.disabled = !input.value;
    }
  }

  address(base, told) {
    const url = new URL(base);
    for (const [name, value] of Object.entries(told)) {
      if (value) url.searchParams.set(name, value);
      else url.searchParams.delete(name);
    }
    return url.toString();
  }
}
