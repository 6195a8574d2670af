// Buttons that copy the text of an element: <button data-copy="ID OF THE ELEMENT">.

function selectText(element) {
  if (element.select) element.select();
  else getSelection().selectAllChildren(element);
}

// Browsers offer navigator.clipboard only over HTTPS and on localhost; a selection can be copied anywhere.
async function copyText(button) {
  const element = document.getElementById(button.dataset.copy);
  selectText(element);
  const copied = navigator.clipboard
    ? await navigator.clipboard.writeText(element.value ?? element.textContent).then(
        () => true,
        () => document.execCommand("copy"),
      )
    : document.execCommand("copy");
  button.parentElement.querySelector("[role=status]").textContent = copied
    ? "Copied."
    : "Copying failed. The text is selected: copy it with the keyboard.";
}

document.documentElement.classList.add("copies");
// Some buttons arrive later, in parts of the page that are loaded again.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copyText(button);
});
