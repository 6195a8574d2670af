// Numbers for people, by the rules of cli/pitwall/units.py, whatever the language of the
// browser. A test compares both.

const SIZES = {
  s: [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
  ],
  B: [
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
    [1, "B"],
  ],
};
// Unit of a metric → the base that is scaled, and what follows its name.
const SCALED = {
  s: ["s", ""],
  B: ["B", ""],
  "s/1k": ["s", " / 1k"],
  "B/1k": ["B", " / 1k"],
  "B/s": ["B", "/s"],
};
const NARROW_SPACE = "\u202f";

// [size, name] of the unit in which values up to `largest` read best, for an axis.
export function unitFor(unit, largest) {
  if (unit === "ratio") return [0.01, "%"];
  if (unit === "count") return [1, ""];
  if (!(unit in SCALED)) return [1, unit];
  const [base, suffix] = SCALED[unit];
  const [size, name] = sizeFor(base, largest);
  return [size, name + suffix];
}

function sizeFor(base, value) {
  return SIZES[base].find(([size]) => value >= size) ?? SIZES[base].at(-1);
}

// Three to four significant digits with the unit; unknown is "–".
export function formatValue(value, unit) {
  if (value === null || Number.isNaN(value)) return "–";
  if (value < 0) return `−${formatValue(-value, unit)}`;
  if (unit === "ratio") return `${groupThousands(value * 100, 2)} %`;
  if (unit === "count") return groupThousands(value);
  if (unit === "money/1M") return `${formatSignificant(value)} for 1M answers`;
  if (!(unit in SCALED)) return `${formatSignificant(value)} ${unit}`.trim();
  const [base, suffix] = SCALED[unit];
  const [size, name] = sizeFor(base, value);
  const number = name === "B" ? groupThousands(value) : formatSignificant(value / size);
  return `${number} ${name}${suffix}`;
}

// A relative change such as -0.1081 as "−10.8 %".
export function formatChange(ratio) {
  if (ratio === null) return "–";
  const percent = Math.abs(ratio * 100).toFixed(1);
  return `${percent === "0.0" ? "±" : ratio > 0 ? "+" : "−"}${percent} %`;
}

// A remaining time: "45 s", "2 min 05 s", "1 h 20 min".
export function formatDuration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60),
    twoDigits = (value) => String(value % 60).padStart(2, "0");
  if (minutes < 60) return `${minutes} min ${twoDigits(whole)} s`;
  return `${Math.floor(minutes / 60)} h ${twoDigits(minutes)} min`;
}

// Three significant digits; numbers of four and more digits as integers with separated thousands.
export function formatSignificant(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  // The rounded value decides: 999.7 is 1 000, and 9.998 is 10.0.
  if (size >= 999.5) return groupThousands(value);
  const digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  if (size >= 0.01) return value.toFixed(digits);
  if (size >= 1e-4) return String(Number(value.toPrecision(2)));
  return value
    .toExponential(1)
    .replace(".0e", "e")
    .replace(/e-(\d)$/, "e-0$1");
}

function groupThousands(value, decimals = 0) {
  return value.toFixed(decimals).replace(/\B(?=(\d{3})+(\.|$))/g, NARROW_SPACE);
}
