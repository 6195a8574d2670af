// "2 min ago" or the instant, on every page, as this browser chose last; by mouse and by keyboard.
const button = document.getElementById("exact-times");

button?.addEventListener("click", () => {
  const exact = document.documentElement.classList.toggle("exact-times");
  button.setAttribute("aria-pressed", String(exact));
  try {
    localStorage.setItem("exact-times", exact ? "yes" : "");
  } catch {
    // A browser that keeps nothing forgets it with the page.
  }
});
button?.setAttribute(
  "aria-pressed",
  String(document.documentElement.classList.contains("exact-times")),
);
