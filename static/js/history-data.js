// The data of a history: columns become arrays, places of several lines share one axis, and of
// more points than the screen has columns only the extremes of each column are drawn.

function filled(column, length) {
  return Array.isArray(column) ? column : new Array(length).fill(column);
}

function summed(steps) {
  let last = 0;
  return steps.map((step) => (last += step));
}

// Values in the unit of the chart, `reach` as a factor; index by index of `commit`.
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

// Points {x, y, index} from rank `first` to `last` and one more on either side, with NaN where the
// line is broken; in at most about two points a column of the screen.
export function drawable(line, axis, first, last, columns, scale) {
  const ranks = line.rank;
  const from = Math.max(0, lowerBound(ranks, first) - 1);
  const to = Math.min(ranks.length, lowerBound(ranks, last + 1e-9) + 1);
  const found = [];
  for (let i = from; i < to; i += 1) {
    if (line.broken.has(i) && found.length) found.push({ x: ranks[i], y: NaN, index: -1 });
    if (line.value[i] !== null && !line.side.has(i)) found.push({ x: ranks[i], y: scale(line.value[i]), index: i });
  }
  return found.length > columns * 2 ? extremes(found, first, last, columns) : found;
}

function extremes(points, first, last, columns) {
  const width = Math.max(1e-9, (last - first) / columns);
  const kept = [];
  let column = null, low = null, high = null;
  const flush = () => {
    if (low === null) return;
    kept.push(...(low === high ? [low] : low.x < high.x ? [low, high] : [high, low]));
    low = high = null;
  };
  for (const point of points) {
    const own = Math.floor((point.x - first) / width);
    if (own !== column || Number.isNaN(point.y)) flush();
    column = own;
    if (Number.isNaN(point.y)) kept.push(point);
    else {
      if (low === null || point.y < low.y) low = point;
      if (high === null || point.y > high.y) high = point;
    }
  }
  flush();
  return kept;
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
  return `${change < 0 ? "−" : "+"}${Math.abs(change * 100).toFixed(1)} %`;
}
