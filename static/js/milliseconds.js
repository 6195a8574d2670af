// Milliseconds as people read them, in the unit that fits.
export function shownMs(ms) {
  if (ms >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  return ms >= 1 ? `${ms.toPrecision(3)} ms` : `${(ms * 1000).toPrecision(3)} µs`;
}
