// Wheel, mouse, fingers and keys on a chart of a history.

const MOVED = 4;

export function hold(box, { chart, flagAt }, look, { pointed, chosen }) {
  const canvas = box.querySelector("canvas");
  const rankAt = (event) => chart.scales.x.getValueForPixel(event.clientX - canvas.getBoundingClientRect().left);
  const flagUnder = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return flagAt(event.clientX - left, event.clientY - top);
  };
  const perPixel = () => { const { x } = chart.scales; return (x.max - x.min) / Math.max(1, x.width); };
  const down = new Map();
  let from = null, moved = false, apart = null;

  box.addEventListener("wheel", (event) => {
    // Some browsers count in lines.
    const [dx, dy] = [event.deltaX, event.deltaY].map((each) => each * (event.deltaMode === 1 ? 20 : 1));
    const sideways = Math.abs(dx) > Math.abs(dy);
    // Where nothing more can be seen the page scrolls on; two fingers of a touchpad are never its.
    if (!sideways && !event.ctrlKey && dy > 0 && look.reach === null) return;
    event.preventDefault();
    if (sideways) look.pan(dx / 600);
    else look.zoom(Math.exp(Math.min(60, Math.max(-60, dy * (event.ctrlKey ? 4 : 1))) / 240), rankAt(event));
  }, { passive: false });

  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    box.setPointerCapture(event.pointerId);
    down.set(event.pointerId, event);
    from = event;
    moved = down.size > 1;
    apart = null;
  });

  box.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) return pointed(rankAt(event));
    const before = down.get(event.pointerId);
    down.set(event.pointerId, event);
    moved ||= Math.abs(event.clientX - from.clientX) > MOVED;
    if (down.size === 2) return pinch();
    if (!moved) return;
    if (event.shiftKey) look.selection = [rankAt(from), rankAt(event)];
    else {
      const { first, last } = look.window(), step = (before.clientX - event.clientX) * perPixel();
      if (look.reach) look.show(first + step, last + step);
      // All is shown: a finger reads off what is under it.
      else pointed(rankAt(event));
    }
    if (event.shiftKey) pointed(rankAt(event));
  });

  function pinch() {
    const [one, other] = [...down.values()];
    const wide = Math.max(20, Math.abs(one.clientX - other.clientX));
    if (apart) look.zoom(apart / wide, (rankAt(one) + rankAt(other)) / 2);
    apart = wide;
    moved = true;
  }

  function up(event) {
    if (!down.delete(event.pointerId)) return;
    const selected = look.selection?.toSorted((a, b) => a - b);
    look.selection = null;
    if (event.type === "pointercancel") return;
    if (selected) look.show(...selected);
    else if (!moved) chosen(flagUnder(event) ?? rankAt(event));
  }
  box.addEventListener("pointerup", up);
  box.addEventListener("pointercancel", up);
  // A finger leaves with each touch: what it pointed at stays.
  box.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && !down.size && document.activeElement !== box) pointed(null); });

  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys(look, chosen)[event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key];
    if (!act) return;
    event.preventDefault();
    act();
    pointed(look.pointer);
  });
}

function keys(look, chosen) {
  return {
    ArrowLeft: () => look.step(-1),
    ArrowRight: () => look.step(1),
    "Shift+ArrowLeft": () => look.pan(-0.25),
    "Shift+ArrowRight": () => look.pan(0.25),
    PageUp: () => look.pan(-0.9),
    PageDown: () => look.pan(0.9),
    Home: () => look.step(-Infinity),
    End: () => look.step(Infinity),
    "+": () => look.zoom(0.6),
    "=": () => look.zoom(0.6),
    "-": () => look.zoom(1 / 0.6),
    0: () => look.all(),
    n: () => look.stepToMark(1),
    N: () => look.stepToMark(-1),
    Enter: () => look.pointer !== null && chosen(look.pointer),
  };
}
