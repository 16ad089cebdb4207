// One stream a tab. The server makes the HTML and names each item; here items only find their places.
const log = document.getElementById("log");
const form = document.getElementById("say");
const field = document.getElementById("text");
const files = form.querySelector("input[type=file]");
const state = document.getElementById("state");
const stop = document.getElementById("stop");
let seen = log.dataset.seen;
let wait = 500;
let nth = 0;
let pinned = true;

const page = Math.random().toString(36).slice(2, 8);
const bottom = () => { if (pinned) log.scrollTop = log.scrollHeight; };
const busy = () => {
  stop.hidden = !log.querySelector(".growing");
};

function place(key, html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  document.getElementById("nothing")?.remove();
  document.getElementById("typing")?.remove();
  const old = document.getElementById(key);
  if (old) old.replaceWith(made.content);
  else log.append(made.content);
  busy();
  bottom();
}

function listen() {
  const stream = new EventSource(`${log.dataset.events}?seen=${seen}`);
  stream.onopen = () => { state.textContent = ""; wait = 500; };
  stream.addEventListener("log", (event) => {
    const { html, seen: now } = JSON.parse(event.data);
    seen = now;
    log.innerHTML = html;
    busy();
    bottom();
  });
  stream.addEventListener("item", (event) => {
    const { key, html } = JSON.parse(event.data);
    seen = "";
    place(key, html);
  });
  stream.addEventListener("over", () => location.assign("/in"));
  stream.onerror = () => {
    stream.close();
    state.textContent = log.dataset.lost;
    setTimeout(listen, wait);
    wait = Math.min(wait * 2, 15000);
  };
}

async function send(target, data) {
  data.set("nth", `${page}${nth++}`);
  const headers = { "X-Remora": "1" };
  const answer = await fetch(target, { method: "POST", body: data, headers, redirect: "manual" });
  if (answer.status === 401 || answer.type === "opaqueredirect") location.assign("/in");
  else if (!answer.ok) throw new Error(await answer.text());
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const target = event.submitter?.getAttribute("formaction") ?? form.getAttribute("action");
  const stopping = target.endsWith("/stop");
  const data = new FormData(form);
  if (!stopping && !field.value.trim() && !files.files.length) return;
  if (stopping) { data.delete("text"); data.delete("file"); }
  const text = field.value;
  if (!stopping) { field.value = ""; pinned = true; }
  try {
    await send(target, stopping ? new URLSearchParams(data) : data);
    if (!stopping) { files.value = ""; named(); }
    state.textContent = "";
  } catch (error) {
    if (!stopping && !field.value) field.value = text;
    state.textContent = error instanceof TypeError ? log.dataset.failed : error.message || log.dataset.failed;
  }
  field.focus();
});

log.addEventListener("submit", async (event) => {
  event.preventDefault();
  const data = new URLSearchParams(new FormData(event.target, event.submitter));
  event.submitter.disabled = true;
  try {
    await send(event.target.getAttribute("action"), data);
  } catch (error) {
    state.textContent = error.message || log.dataset.failed;
  }
  event.submitter.disabled = false;
});

field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit(document.getElementById("send"));
  }
});

function named() {
  document.getElementById("files").textContent = [...files.files].map((file) => file.name).join(", ");
}
files.addEventListener("change", named);
log.addEventListener("scroll", () => {
  pinned = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
});

document.querySelector(".talks details").open = matchMedia("(min-width: 60rem)").matches;
bottom();
busy();
listen();
