// Line numbers next to a definition with the invalid line marked, and a button that goes to that line.
const area = document.querySelector(".editor textarea");
const gutter = document.querySelector(".editor .line-numbers");
const review = document.getElementById("review");
let drawn = "";

function wrongLine() {
  return Number(review.querySelector("[data-line]")?.dataset.line ?? 0);
}

function draw() {
  const count = area.value.split("\n").length;
  const wrong = wrongLine();
  if (drawn === `${count} ${wrong}`) return;
  drawn = `${count} ${wrong}`;
  const numbers = Array.from({ length: count }, (_, place) => {
    const number = document.createElement("span");
    number.textContent = place + 1 === wrong ? `▶ ${place + 1}\n` : `${place + 1}\n`;
    if (place + 1 === wrong) number.dataset.wrong = "";
    return number;
  });
  gutter.replaceChildren(...numbers);
  follow();
}

function follow() {
  gutter.scrollTop = area.scrollTop;
}

function goTo(line) {
  const lines = area.value.split("\n");
  const begin = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  area.focus();
  area.setSelectionRange(begin, begin + (lines[line - 1] ?? "").length);
  area.scrollTop = (line - 4) * Number.parseFloat(getComputedStyle(area).lineHeight);
}

if (area && gutter && review) {
  gutter.hidden = false;
  area.addEventListener("input", draw);
  area.addEventListener("scroll", follow);
  review.addEventListener("click", (event) => {
    const line = event.target.closest("[data-go-to]")?.dataset.goTo;
    if (line) goTo(Number(line));
  });
  new MutationObserver(draw).observe(review, { childList: true, subtree: true, attributes: true });
  draw();
}
