// Switches all times between "2 min ago" and the timestamp. The browser stores the choice.
const button = document.getElementById("exact-times");

button?.addEventListener("click", () => {
  const exact = document.documentElement.classList.toggle("exact-times");
  button.setAttribute("aria-pressed", String(exact));
  try {
    localStorage.setItem("exact-times", exact ? "yes" : "");
  } catch {
    // Without storage the choice is lost with the page.
  }
});
button?.setAttribute(
  "aria-pressed",
  String(document.documentElement.classList.contains("exact-times")),
);
