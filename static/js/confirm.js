// Links with data-confirm lead to the page that asks before a destructive action. This opens its
// form as a dialog, so that the present page stays visible.

async function openConfirmation(link) {
  const response = await fetch(link.href);
  const text = await response.text();
  const form = new DOMParser().parseFromString(text, "text/html").getElementById("confirmation");
  if (!form) throw new Error("this page asks nothing");
  // The link was pressed twice.
  if (document.querySelector("dialog[open]")) return;
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "question");
  dialog.append(document.adoptNode(form));
  form.querySelector("[data-cancel]").addEventListener("click", (event) => {
    event.preventDefault();
    dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    link.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-confirm]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  // An error page, or the login, is shown as a page.
  openConfirmation(link).catch(() => location.assign(link.href));
});
