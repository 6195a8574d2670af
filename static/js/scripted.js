// Marks the page as scripted, so that the style sheet hides buttons that only pages without scripts
// need. Also marks it for exact times if this browser chose them. Not a module: it has to run before
// the first paint, because the layout would jump later.
document.documentElement.classList.add("scripted");
try {
  if (localStorage.getItem("exact-times")) document.documentElement.classList.add("exact-times");
} catch {
  // Without storage, times are relative.
}
