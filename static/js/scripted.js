// Marks the page as scripted: buttons that scripts make needless are hidden by the style sheet; and
// with exact times, where this browser chose them.
// No module, so that it runs before anything is shown: later, what it shows or hides would jump.
document.documentElement.classList.add("scripted");
try {
  if (localStorage.getItem("exact-times")) document.documentElement.classList.add("exact-times");
} catch {
  // A browser that keeps nothing shows times as they are seen from now.
}
