// Buttons that copy the text of a field: <button data-copy="ID OF THE FIELD" hidden>.

// The clipboard of its own is only there over HTTPS and on localhost; what is selected can always be copied.
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
    : "It is selected: copy it with your keyboard.";
}

document.querySelectorAll("[data-copy]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
});
