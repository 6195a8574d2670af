// Makes scrollable elements without focusable content focusable, so that the arrow keys scroll them:
// not every browser does that.
const SCROLLABLE = ".scroll, .chosen-cases, pre:not([aria-hidden])";
const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

function updateFocusable(node) {
  const scrolls = node.scrollWidth > node.clientWidth || node.scrollHeight > node.clientHeight;
  const needed = scrolls && !node.querySelector(FOCUSABLE);
  if (needed && !node.hasAttribute("tabindex")) {
    node.tabIndex = 0;
    node.dataset.reachable = "";
  } else if (!needed && "reachable" in node.dataset) {
    node.removeAttribute("tabindex");
    delete node.dataset.reachable;
  }
}

const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) updateFocusable(target);
});
let requested = false;

function observeAll() {
  requested = false;
  for (const node of document.querySelectorAll(SCROLLABLE)) sizes.observe(node);
}

new MutationObserver(() => {
  if (!requested) requestAnimationFrame(observeAll);
  requested = true;
}).observe(document.body, { childList: true, subtree: true });
observeAll();
