// Buttons that copy the text of a field: <button data-copy="ID OF THE FIELD" hidden>.

// Browsers offer navigator.clipboard only over HTTPS and on localhost; a selection can be copied anywhere.
async function copy(button) {
  const text = document.getElementById(button.dataset.copy);
  text.select();
  const copied = navigator.clipboard
    ? await navigator.clipboard.writeText(text.value).then(
        () => true,
        () => document.execCommand("copy"),
      )
    : document.execCommand("copy");
  button.parentElement.querySelector("[role=status]").textContent = copied
    ? "Copied."
    : "Copying failed. The text is selected: copy it with the keyboard.";
}

document.querySelectorAll("[data-copy]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
});
