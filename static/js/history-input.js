// Wheel, mouse, touch and keyboard input on the chart of a history.

// A pointer that moved no more than so many pixels has clicked.
const CLICK_TOLERANCE = 4;
const PIXELS_A_LINE = 20;

// `onPoint(rank)` follows the pointer, null once it has left; `onSelect(rank)` is a click or Enter.
export function bindInput(box, { chart, flagAt }, view, { onPoint, onSelect }) {
  const canvas = box.querySelector("canvas");
  const rankAt = (event) =>
    chart.scales.x.getValueForPixel(event.clientX - canvas.getBoundingClientRect().left);
  const flagUnder = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return flagAt(event.clientX - left, event.clientY - top);
  };
  const ranksPerPixel = () => {
    const { x } = chart.scales;
    return (x.max - x.min) / Math.max(1, x.width);
  };
  const pointers = new Map();
  let start = null,
    hasMoved = false,
    distance = null;

  box.addEventListener(
    "wheel",
    (event) => {
      // Some browsers count in lines.
      const [dx, dy] = [event.deltaX, event.deltaY].map(
        (delta) => delta * (event.deltaMode === 1 ? PIXELS_A_LINE : 1),
      );
      const isSideways = Math.abs(dx) > Math.abs(dy);
      // When everything is shown, the page scrolls instead, except with two fingers on a touchpad.
      if (!isSideways && !event.ctrlKey && dy > 0 && view.range === null) return;
      event.preventDefault();
      if (isSideways) view.pan(dx / 600);
      else
        view.zoom(
          Math.exp(Math.min(60, Math.max(-60, dy * (event.ctrlKey ? 4 : 1))) / 240),
          rankAt(event),
        );
    },
    { passive: false },
  );

  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    box.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event);
    start = event;
    hasMoved = pointers.size > 1;
    distance = null;
  });

  box.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return onPoint(rankAt(event));
    const previous = pointers.get(event.pointerId);
    pointers.set(event.pointerId, event);
    hasMoved ||= Math.abs(event.clientX - start.clientX) > CLICK_TOLERANCE;
    if (pointers.size === 2) return pinch();
    if (hasMoved) drag(event, previous);
  });

  function drag(event, previous) {
    if (event.shiftKey) view.selection = [rankAt(start), rankAt(event)];
    // With everything shown there is nothing to drag: a finger reads the point under it.
    if (event.shiftKey || !view.range) return onPoint(rankAt(event));
    const { first, last } = view.window(),
      step = (previous.clientX - event.clientX) * ranksPerPixel();
    view.showRange(first + step, last + step);
  }

  function pinch() {
    const [one, other] = [...pointers.values()];
    const now = Math.max(20, Math.abs(one.clientX - other.clientX));
    if (distance) view.zoom(distance / now, (rankAt(one) + rankAt(other)) / 2);
    distance = now;
    hasMoved = true;
  }

  function release(event) {
    if (!pointers.delete(event.pointerId)) return;
    const selected = view.selection?.toSorted((a, b) => a - b);
    view.selection = null;
    if (event.type === "pointercancel") return;
    if (selected) view.showRange(...selected);
    else if (!hasMoved) onSelect(flagUnder(event) ?? rankAt(event));
  }
  box.addEventListener("pointerup", release);
  box.addEventListener("pointercancel", release);
  box.addEventListener("pointerleave", (event) => {
    // A finger leaves with each touch: the point that it chose stays.
    if (event.pointerType === "mouse" && !pointers.size && document.activeElement !== box)
      onPoint(null);
  });

  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key;
    const action = keyActions(view, onSelect)[key];
    if (!action) return;
    event.preventDefault();
    action();
    onPoint(view.pointer);
  });
}

function keyActions(view, onSelect) {
  return {
    ArrowLeft: () => view.step(-1),
    ArrowRight: () => view.step(1),
    "Shift+ArrowLeft": () => view.pan(-0.25),
    "Shift+ArrowRight": () => view.pan(0.25),
    PageUp: () => view.pan(-0.9),
    PageDown: () => view.pan(0.9),
    Home: () => view.step(-Infinity),
    End: () => view.step(Infinity),
    "+": () => view.zoom(0.6),
    "=": () => view.zoom(0.6),
    "-": () => view.zoom(1 / 0.6),
    0: () => view.showAll(),
    n: () => view.stepToEvent(1),
    N: () => view.stepToEvent(-1),
    Enter: () => view.pointer !== null && onSelect(view.pointer),
  };
}
