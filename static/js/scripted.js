// Marks the page as scripted: buttons that scripts make needless are hidden by the style sheet.
document.documentElement.classList.add("scripted");
