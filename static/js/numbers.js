// Numbers of an axis as the pages write them, whatever the language of the browser: a point, and
// the thousands set off by a narrow space.
Chart.defaults.locale = "en-GB";

export function grouped(...tick) {
  return Chart.Ticks.formatters.numeric.apply(this, tick).replaceAll(",", "\u202f").replace("-", "−");
}
