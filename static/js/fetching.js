// Sends a request again when the fetch that it waits for has ended.
function sendWhenFetched() {
  const fetch = document.getElementById("fetch");
  const form = document.querySelector("form[data-send-when-fetched]");
  if (!form || !fetch || "awaited" in fetch.dataset) return;
  clearInterval(timer);
  form.submit();
}

const timer = setInterval(sendWhenFetched, 500);
