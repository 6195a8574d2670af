// Shows only the key field that the chosen way of logging in needs. Without scripts all are shown.
const wanted = { stored: "id_credential", paste: "id_private_key" };

function arrange() {
  const chosen = document.querySelector("input[name=key_source]:checked")?.value;
  for (const [source, id] of Object.entries(wanted)) {
    const field = document.getElementById(id)?.closest(".field");
    if (field) field.hidden = source !== chosen;
  }
}

for (const input of document.querySelectorAll("input[name=key_source]")) {
  input.addEventListener("change", arrange);
}
arrange();
