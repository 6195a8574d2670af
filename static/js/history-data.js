// The data of a history: columns become arrays, and the positions of several lines share one axis.
// With more points than the screen has columns, the points of one column are drawn as a group: their
// mean, the range from the smallest to the largest, and the outer edges of their intervals.

// A column with one value everywhere is sent as that value.
function expandColumn(column, length) {
  return Array.isArray(column) ? column : new Array(length).fill(column);
}

function cumulativeSums(steps) {
  let last = 0;
  return steps.map((step) => {
    last += step;
    return last;
  });
}

function groupByIndex(annotations) {
  const groups = new Map();
  for (const annotation of annotations)
    groups.set(annotation.at, [...(groups.get(annotation.at) ?? []), annotation]);
  return groups;
}

// Arrays by the index of `commit`. `halfWidth` is that of the interval as a factor, or null;
// `annotationsAt`: index → the annotations there.
export function decodeHistory(answer) {
  const { points, others } = answer;
  const length = points.commit.length;
  const column = (name) => expandColumn(points[name], length);
  return {
    ...answer,
    commit: points.commit,
    position: cumulativeSums(points.position),
    at: cumulativeSums(points.at),
    day: cumulativeSums(points.day),
    value: points.value,
    halfWidth: column("half_width").map((value) => (value === null ? null : Math.exp(value / 1e4))),
    trials: column("trials"),
    suspect: column("suspect"),
    invalid: column("invalid"),
    otherPoint: expandColumn(others.point, others.value.length),
    otherValue: others.value,
    side: new Set(answer.side),
    outlier: new Set(answer.outliers),
    empty: points.value.flatMap((value, index) => (value === null ? [index] : [])),
    annotationsAt: groupByIndex(answer.annotations),
    levels: new Map(),
    // Breaks of the line: no commit was measured on both sides.
    broken: new Set(
      answer.breaks.filter((each) => each.bridge === null).map((each) => each.before),
    ),
  };
}

// The positions of some lines, each once, in order: the horizontal axis counts in their ranks.
export function axisOf(lines) {
  const positions = [...new Set(lines.flatMap((line) => line.position))].sort((a, b) => a - b);
  return { positions, rank: new Map(positions.map((position, rank) => [position, rank])) };
}

// The first index of an ascending list whose entry is not below `wanted`.
export function lowerBound(list, wanted) {
  let low = 0,
    high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Points {x, y, low, high} from rank `first` to `last` and one more on either side, with NaN where
// the line is broken; `low` and `high` are the band, null without one. A point has its `index`, a
// group of a column has `least` and `most` in its place.
export function visiblePoints(line, first, last, columns, scale) {
  const { rank } = line;
  const from = Math.max(0, lowerBound(rank, first) - 1);
  const to = Math.min(rank.length, lowerBound(rank, last + 1e-9) + 1);
  if (to - from > columns * 2) return groupedPoints(line, first, last, columns, scale);
  const points = [];
  for (let i = from; i < to; i += 1) {
    if (line.broken.has(i) && points.length) points.push(gapAt(rank[i]));
    const value = line.value[i],
      factor = line.halfWidth[i];
    if (value === null || line.side.has(i)) continue;
    points.push({
      x: rank[i],
      y: scale(value),
      index: i,
      low: factor === null ? null : scale(value / factor),
      high: factor === null ? null : scale(value * factor),
    });
  }
  return points;
}

const gapAt = (x) => ({ x, y: NaN, low: null, high: null, index: -1 });

function groupedPoints(line, first, last, columns, scale) {
  // Groups are made once and stay the same while the range moves.
  const power = Math.ceil(Math.log2((last - first + 1) / columns));
  if (!line.levels.has(power)) line.levels.set(power, groupsOf(line, power));
  const groups = line.levels.get(power);
  const after = groups.findIndex(({ x }) => x >= first);
  const start = Math.max(0, (after < 0 ? groups.length : after) - 1);
  const points = [];
  for (let i = start; i < groups.length; i += 1) {
    const group = groups[i];
    if (group.broken && points.length) points.push(gapAt(group.x));
    points.push({
      x: group.x,
      y: scale(group.sum / group.count),
      index: -1,
      least: scale(group.least),
      most: scale(group.most),
      low: group.low === Infinity ? null : scale(Math.min(group.low, group.least)),
      high: group.high === -Infinity ? null : scale(Math.max(group.high, group.most)),
    });
    if (group.x > last) break;
  }
  return points;
}

// Each 2 ** power neighbouring ranks as one group.
function groupsOf(line, power) {
  const groups = [],
    wide = 2 ** power;
  let group = null,
    key = null,
    broken = false;
  for (let i = 0; i < line.rank.length; i += 1) {
    broken ||= line.broken.has(i);
    const value = line.value[i],
      factor = line.halfWidth[i];
    if (value === null || line.side.has(i)) continue;
    const column = Math.floor(line.rank[i] / wide);
    if (column !== key || broken) {
      group = {
        x: 0,
        count: 0,
        sum: 0,
        least: Infinity,
        most: -Infinity,
        low: Infinity,
        high: -Infinity,
        broken,
      };
      groups.push(group);
      key = column;
      broken = false;
    }
    group.x += (line.rank[i] - group.x) / (group.count + 1);
    group.count += 1;
    group.sum += value;
    group.least = Math.min(group.least, value);
    group.most = Math.max(group.most, value);
    if (factor !== null) {
      group.low = Math.min(group.low, value / factor);
      group.high = Math.max(group.high, value * factor);
    }
  }
  return groups;
}
