// What scrolls and has nothing in it to focus can be focused itself, so that the arrow keys move it:
// not every browser sees to that.
const SCROLLS = ".scroll, .chosen-cases, pre";
const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

function mark(node) {
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

const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target)));
let asked = false;

function look() {
  asked = false;
  document.querySelectorAll(SCROLLS).forEach((node) => sizes.observe(node));
}

new MutationObserver(() => {
  if (!asked) requestAnimationFrame(look);
  asked = true;
}).observe(document.body, { childList: true, subtree: true });
look();
