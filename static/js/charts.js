// Shared by all charts: colours of the style sheet, and labels of a numeric axis.
Chart.defaults.locale = "en-GB";
// A phone would draw each frame for longer than the frame may last.
Chart.defaults.animation = false;

export const darkScheme = matchMedia("(prefers-color-scheme: dark)");

// A colour of the style sheet in a form that a canvas accepts, with an opacity of `share` per cent.
export function colour(name, share = 100) {
  // Canvas does not know light-dark(): let the style sheet engine resolve it.
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.color =
    share === 100 ? `var(${name})` : `color-mix(in srgb, var(${name}) ${share}%, transparent)`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

// A resolved colour with an opacity from 0 to 1.
export function fade(ink, opacity) {
  return ink.replace(/^rgb\((.*)\)$/, `rgba($1, ${opacity})`);
}

// The label of a tick, with a narrow space between thousands, as on the pages.
export function formatTick(...tick) {
  return Chart.Ticks.formatters.numeric
    .apply(this, tick)
    .replaceAll(",", "\u202f")
    .replace("-", "−");
}
