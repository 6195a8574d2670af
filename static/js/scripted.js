// Marks the page as scripted: buttons that scripts make needless are hidden by the style sheet.
// No module, so that it runs before anything is shown: later, what it shows or hides would jump.
document.documentElement.classList.add("scripted");
