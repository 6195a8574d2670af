// Sends a request again, once the fetch that it waits for has ended.
const GOING_ON = new Set(["queued", "running"]);

function look() {
  const state = document.getElementById("fetch")?.dataset.state;
  const form = document.querySelector("form[data-send-when-fetched]");
  if (!form || !state || GOING_ON.has(state)) return;
  clearInterval(timer);
  form.submit();
}

const timer = setInterval(look, 500);
