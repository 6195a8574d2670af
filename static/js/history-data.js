// The data of a history: columns become arrays, places of several lines share one axis, and where
// there are more points than the screen has columns, those that share a column are drawn as one:
// their mean, from the smallest to the largest of them, and the outer edges of their intervals.

function filled(column, length) {
  return Array.isArray(column) ? column : new Array(length).fill(column);
}

function summed(steps) {
  let last = 0;
  return steps.map((step) => (last += step));
}

function grouped(annotations) {
  const found = new Map();
  for (const each of annotations) found.set(each.at, [...(found.get(each.at) ?? []), each]);
  return found;
}

// `reach` as a factor; index by index of `commit`. `written`: index → the notes there.
export function decoded(answer) {
  const { points, others } = answer;
  const length = points.commit.length;
  const column = (name) => filled(points[name], length);
  return {
    ...answer,
    commit: points.commit,
    place: summed(points.place),
    at: summed(points.at),
    value: points.value,
    reach: column("reach").map((each) => (each === null ? null : Math.exp(each / 1e4))),
    n: column("n"),
    suspect: column("suspect"),
    invalid: column("invalid"),
    otherOf: filled(others.of, others.value.length),
    otherValue: others.value,
    side: new Set(answer.side),
    outlier: new Set(answer.outliers),
    empty: points.value.flatMap((value, index) => (value === null ? [index] : [])),
    written: grouped(answer.annotations),
    levels: new Map(),
    // Where the line may not be joined: no commit was measured on both sides.
    broken: new Set(answer.marks.filter((mark) => mark.bridge === null).map((mark) => mark.before)),
  };
}

// All places of some lines, each once, in order: the horizontal axis counts in these.
export function axisOf(lines) {
  const places = [...new Set(lines.flatMap((line) => line.place))].sort((a, b) => a - b);
  return { places, rank: new Map(places.map((place, rank) => [place, rank])) };
}

// The first index of an ascending list whose entry is not below `wanted`.
export function lowerBound(list, wanted) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Points {x, y, low, high} from rank `first` to `last` and one more on either side, with NaN where
// the line is broken; `low` and `high` are the band, null without one. One has its `index`, several
// that share a column of the screen have `least` and `most` in its place.
export function drawable(line, first, last, columns, scale) {
  const { rank } = line;
  const from = Math.max(0, lowerBound(rank, first) - 1);
  const to = Math.min(rank.length, lowerBound(rank, last + 1e-9) + 1);
  if (to - from > columns * 2) return shared(line, first, last, columns, scale);
  const found = [];
  for (let i = from; i < to; i += 1) {
    if (line.broken.has(i) && found.length) found.push(gap(rank[i]));
    const value = line.value[i], reach = line.reach[i];
    if (value === null || line.side.has(i)) continue;
    found.push({ x: rank[i], y: scale(value), index: i, low: reach === null ? null : scale(value / reach), high: reach === null ? null : scale(value * reach) });
  }
  return found;
}

const gap = (x) => ({ x, y: NaN, low: null, high: null, index: -1 });

function shared(line, first, last, columns, scale) {
  // Groups are made once, and stay the same while the window moves.
  const power = Math.ceil(Math.log2((last - first + 1) / columns));
  if (!line.levels.has(power)) line.levels.set(power, groupsOf(line, power));
  const groups = line.levels.get(power);
  const after = groups.findIndex(({ x }) => x >= first);
  const start = Math.max(0, (after < 0 ? groups.length : after) - 1);
  const found = [];
  for (let i = start; i < groups.length; i += 1) {
    const each = groups[i];
    if (each.broken && found.length) found.push(gap(each.x));
    found.push({
      x: each.x, y: scale(each.sum / each.count), index: -1, least: scale(each.least), most: scale(each.most),
      low: each.low === Infinity ? null : scale(Math.min(each.low, each.least)), high: each.high === -Infinity ? null : scale(Math.max(each.high, each.most)),
    });
    if (each.x > last) break;
  }
  return found;
}

// The points of each 2 ** power neighbouring ranks as one.
function groupsOf(line, power) {
  const groups = [], wide = 2 ** power;
  let own = null, key = null, broken = false;
  for (let i = 0; i < line.rank.length; i += 1) {
    broken ||= line.broken.has(i);
    const value = line.value[i], reach = line.reach[i];
    if (value === null || line.side.has(i)) continue;
    const now = Math.floor(line.rank[i] / wide);
    if (now !== key || broken) {
      own = { x: 0, count: 0, sum: 0, least: Infinity, most: -Infinity, low: Infinity, high: -Infinity, broken };
      groups.push(own);
      key = now;
      broken = false;
    }
    own.x += (line.rank[i] - own.x) / (own.count + 1);
    own.count += 1;
    own.sum += value;
    own.least = Math.min(own.least, value);
    own.most = Math.max(own.most, value);
    if (reach !== null) {
      own.low = Math.min(own.low, value / reach);
      own.high = Math.max(own.high, value * reach);
    }
  }
  return groups;
}

const UNITS = { s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]], "s/1k": [[1, "s / 1k"], [1e-3, "ms / 1k"], [1e-6, "µs / 1k"]],
  B: [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]], "B/s": [[2 ** 30, "GiB/s"], [2 ** 20, "MiB/s"], [2 ** 10, "KiB/s"], [1, "B/s"]],
  ratio: [[0.01, "%"]], count: [[1, ""]] };

// [size, name] of the unit in which values up to `largest` read best.
export function unitFor(unit, largest) {
  const sizes = UNITS[unit] ?? [[1, unit]];
  return sizes.find(([size]) => largest >= size) ?? sizes[sizes.length - 1];
}

export function shown(value) {
  if (value === null || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-GB").replaceAll(",", "\u202f");
  return Number(value.toPrecision(4)).toString();
}

export function shownChange(change) {
  const percent = Math.abs(change * 100).toFixed(1);
  return `${percent === "0.0" ? "±" : change < 0 ? "−" : "+"}${percent} %`;
}
