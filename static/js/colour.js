// A colour of the style sheet as a canvas understands it; `share` per cent of it, the rest clear.
export function colour(name, share = 100) {
  // Canvas does not know light-dark(): let the style sheet engine resolve it.
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.color = share === 100 ? `var(${name})` : `color-mix(in srgb, var(${name}) ${share}%, transparent)`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}
