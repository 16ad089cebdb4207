// One stream a browser: browsers open six connections to a host, and each tab may show a conversation. The tab that
// holds a lock reads the stream for all; when it goes, the browser gives the lock to another. The server makes the HTML
// and names each item; here items only find their places. What could not be sent stays, with a way to send it again.
const log = document.getElementById("log");
const form = document.getElementById("say");
const field = document.getElementById("text");
const state = document.getElementById("state");
const stop = document.getElementById("stop");
const { thread: own, of, who } = log.dataset;
// Tabs of another session or agent have a name of their own, so that nothing passes between people.
const group = `remora ${of}`;
const air = new BroadcastChannel(navigator.locks ? group : `${group} ${Math.random()}`);
const unsent = new Map();
let seen = log.dataset.seen;
let later = [];
// A page that was asked for a message shows that one, not the last.
const sought = document.getElementById("at");
let pinned = !sought && !isPast();

// The draft of each conversation outlives a reload, in its tab alone.
const draft = `remora draft ${who} ${own}`;
field.value ||= sessionStorage.getItem(draft) ?? "";

const bottom = () => { if (pinned) log.scrollTop = log.scrollHeight; };
const busy = () => { stop.hidden = !log.querySelector(".growing"); };

// What is shown --------------------------------------------------------------------------------------------------

function showLog({ html, seen: now }) {
  if (isPast()) return;
  seen = now;
  still(() => {
    keepEdits(() => showLast(html));
    for (const message of unsent.values()) keep(message);
  });
  shown();
}

function putEdit(item, edit) {
  item.querySelector(".words").hidden = item.querySelector(".foot").hidden = true;
  item.append(edit);
}

// An edit that is open goes over to the item that takes the place of its own.
function keepEdits(change) {
  const focused = document.activeElement;
  const edits = [...log.querySelectorAll("form.edit")].map((edit) => [edit.closest(".item").id, edit]);
  change();
  for (const [id, edit] of edits) {
    const item = document.getElementById(id);
    if (!item || edit.isConnected) continue;
    putEdit(item, edit);
    if (edit.contains(focused)) focused.focus({ preventScroll: true });
  }
}

function shown() {
  watchEdges();
  for (const code of log.querySelectorAll(".item:not(.growing) .words pre")) copiable(code);
  busy();
  bottom();
}

function copiable(code) {
  if (code.parentNode.className === "code") return;
  const frame = Object.assign(document.createElement("div"), { className: "code" });
  const button = Object.assign(document.createElement("button"), { className: "copy", type: "button", textContent: log.dataset.copy });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = log.dataset.copied;
      setTimeout(() => { button.textContent = log.dataset.copy; }, 2000);
    } catch {
      // Without a certificate, or if the person refuses it, browsers leave only the selection.
      getSelection().selectAllChildren(code);
    }
  });
  code.replaceWith(frame);
  frame.append(code, button);
}

// Makes a node what another one is. What did not change stays, so that a selection in an answer that grows lasts.
function grow(node, fresh) {
  if (node.isEqualNode(fresh)) return;
  if (node.nodeName !== fresh.nodeName) { node.replaceWith(fresh); return; }
  if (node.nodeType === Node.TEXT_NODE) {
    if (fresh.data.startsWith(node.data)) node.appendData(fresh.data.slice(node.data.length));
    else node.data = fresh.data;
    return;
  }
  for (const name of node.getAttributeNames()) if (!fresh.hasAttribute(name)) node.removeAttribute(name);
  for (const name of fresh.getAttributeNames()) node.setAttribute(name, fresh.getAttribute(name));
  const before = [...node.childNodes];
  [...fresh.childNodes].forEach((child, at) => { if (before[at]) grow(before[at], child); else node.append(child); });
  before.slice(fresh.childNodes.length).forEach((child) => child.remove());
}

function showItem({ key, html }) {
  seen = "";
  taken(key);
  if (isPast()) return;
  const made = parsed(html);
  document.getElementById("nothing")?.remove();
  document.getElementById("typing")?.remove();
  const old = document.getElementById(key);
  const fresh = made.querySelector("article");
  if (old?.classList.contains("growing") && fresh) grow(old, fresh);
  else if (old) keepEdits(() => old.replaceWith(made));
  else log.append(made);
  shown();
  document.dispatchEvent(new CustomEvent("came", { detail: document.getElementById(key) }));
}

const STATES = {
  on: () => { state.textContent = ""; resend(); },
  restart: () => { state.textContent = log.dataset.restart; },
  lost: () => { state.textContent = log.dataset.lost; },
  many: () => { state.textContent = log.dataset.many; },
  over: async () => {
    if (unsent.size || field.value.trim()) signIn(state);
    // This may come late, when the person has signed in again in another tab.
    else if (await renewed()) location.reload();
    else location.assign("/in");
  },
};

function signIn(place) {
  const link = Object.assign(document.createElement("a"), { href: "/in", target: "_blank", textContent: log.dataset.over });
  place.replaceChildren(link);
}

// The stream -----------------------------------------------------------------------------------------------------

let leading = false;
let stream = null;
let trying = null;
let wait = 500;
let also = "";
let current = "lost";
let heard = 0;
let restarts = -Infinity;
// Milliseconds in which a tab that holds the lock answers.
const PATIENCE = 5000;

function tell(message) {
  air.postMessage(message);
  hear(message);
}

function hear(message) {
  if (message.kind === "here") {
    if (!leading) return;
    if (!watched().includes(message.thread)) wanted = message.thread;
    answer();
    return;
  }
  if (message.kind === "bye") { if (leading) setTimeout(answer, 1000); return; }
  if (message.kind === "use") { if (leading && !stream && !trying) listen(); return; }
  heard = performance.now();
  if (message.kind === "state") {
    current = message.state;
    const left = current === "on" && message.full && !message.full.includes(own);
    // Using it asks for it at once.
    if (left) asked = -PATIENCE;
    STATES[left ? "many" : current]();
    return;
  }
  if (message.kind === "talks") { relist(); return; }
  if (message.thread !== own) return;
  if (later) later.push(message);
  else show(message);
}
air.onmessage = (event) => hear(event.data);

function show(message) {
  if (message.kind === "log") showLog(message);
  else showItem(message);
}

// Conversations of one stream, of which the first is this tab's own; the server takes no more.
const mostWatched = Number(log.dataset.watched);
// The one that was used last of those that the stream did not have.
let wanted = "";
const watched = () => [own, ...also.split(",")];

// Conversations that other tabs show, as many as the stream may have: each tab holds a lock of that name.
async function others() {
  if (!navigator.locks) return "";
  const { held } = await navigator.locks.query();
  const names = held.filter((lock) => lock.name.startsWith(`${group}/`)).map((lock) => lock.name.slice(group.length + 1));
  const more = [...new Set(names)].filter((name) => name !== own && name !== wanted).sort();
  return [...(names.includes(wanted) ? [wanted] : []), ...more].slice(0, mostWatched - 1).sort().join();
}

const tellState = (now) => tell({ kind: "state", state: now, full: watched().length < mostWatched ? null : watched() });

async function answer() {
  tellState(current);
  if (stream && (await others()) !== also) listen();
}

let opening = false;
async function listen() {
  if (opening) return;
  opening = true;
  clearTimeout(trying);
  trying = null;
  also = await others();
  opening = false;
  if (!leading) return;
  stream?.close();
  const opened = new EventSource(`${log.dataset.events}?${new URLSearchParams({ of, seen, also })}`);
  stream = opened;
  const end = (now) => {
    opened.close();
    if (stream !== opened) return;
    stream = null;
    tellState(now);
  };
  // Whoever came while this opened said so in vain.
  opened.onopen = () => { wait = 500; current = "on"; answer(); };
  for (const kind of ["log", "item", "talks"]) {
    opened.addEventListener(kind, (event) => tell({ kind, ...JSON.parse(event.data) }));
  }
  opened.addEventListener("over", () => end("over"));
  opened.addEventListener("restart", () => { restarts = performance.now(); });
  // Too many browsers of this person: it begins again when one of its tabs is used.
  opened.addEventListener("many", () => end("many"));
  opened.onerror = async () => {
    if (stream !== opened) return;
    // After a minute it is more than a restart.
    end(performance.now() - restarts < 60000 ? "restart" : "lost");
    trying = setTimeout(listen, wait);
    wait = Math.min(wait * 2, 15000);
    await catchUp();
  };
}

// Loads what came since the page was made, and then what the stream brought meanwhile.
async function catchUp() {
  later ??= [];
  try {
    const reply = await fetch(`${log.dataset.log}?${new URLSearchParams({ of, seen })}`, { redirect: "manual", signal: AbortSignal.timeout(30000) });
    if (reply.status === 401 || reply.type === "opaqueredirect") {
      current = "over";
      leave();
      STATES.over();
    } else if (reply.status === 200) showLog(await reply.json());
  } catch {
    // The tab with the stream says that the connection is lost, and brings everything when it is back.
  }
  const waiting = later;
  later = null;
  waiting?.forEach(show);
}

let release = null;
function leave() {
  leading = false;
  clearTimeout(trying);
  trying = null;
  stream?.close();
  stream = null;
  release?.();
}

async function lead(steal) {
  const options = steal ? { steal: true } : {};
  try {
    await navigator.locks.request(group, options, () => {
      leading = true;
      listen();
      return new Promise((done) => { release = done; });
    });
  } catch {
    // Another tab took over while this one slept.
    leave();
    lead(false);
    asked = -PATIENCE;
    used();
  }
}

// A tab in the background may sleep with the lock. One that is used and hears nothing of it takes over.
let asked = -PATIENCE;
async function used() {
  if (current === "over" || document.visibilityState !== "visible") return;
  if (leading) {
    if (!stream && !trying) listen();
  } else if (!navigator.locks) {
    leading = true;
    listen();
  } else if (performance.now() - asked > PATIENCE) {
    asked = performance.now();
    air.postMessage({ kind: "use" });
    air.postMessage({ kind: "here", thread: own });
    setTimeout(() => { if (!leading && heard < asked && current !== "over") lead(true); }, PATIENCE);
  }
}

addEventListener("online", resend);
addEventListener("focus", used);
document.addEventListener("pointerdown", used);
document.addEventListener("keydown", used);
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") used();
  else if (!navigator.locks) leave();
});
addEventListener("pagehide", () => air.postMessage({ kind: "bye" }));

async function join() {
  if (!navigator.locks) { await catchUp(); used(); return; }
  await new Promise((held) => {
    navigator.locks.request(`${group}/${own}`, { mode: "shared" }, () => { held(); return new Promise(() => {}); });
  });
  lead(false);
  await catchUp();
  used();
}

// What is sent ---------------------------------------------------------------------------------------------------

const once = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

class Unsent extends Error {}

async function post(target, data) {
  const values = [...data.values()];
  const signal = AbortSignal.timeout(values.some((value) => value.size) ? 300000 : 30000);
  // What is short goes out even if the tab is closed meanwhile.
  const keepalive = values.every((value) => !value.size && (value.length ?? 0) < 8000);
  let reply;
  try {
    reply = await fetch(target, { method: "POST", body: data, headers: { "X-Remora": "1" }, redirect: "manual", keepalive, signal });
  } catch {
    throw Object.assign(new Unsent(log.dataset.failed), { lost: true });
  }
  if (reply.ok) return;
  const over = reply.status === 401 || reply.type === "opaqueredirect";
  const why = over ? "" : (await reply.text().catch(() => "")).trim().slice(0, 500);
  const said = why ? `${log.dataset.unsent} ${why}` : log.dataset.failed;
  throw Object.assign(new Unsent(said), { over, stale: over || reply.status === 403, lost: reply.status === 503 });
}

// Sends a form; where its session is over, with a word of the session that its person has begun since. The page then
// belongs to a session that is gone, so it is loaded again once nothing on it waits.
async function send(target, data, sent) {
  try {
    await post(target, data);
    sent();
  } catch (error) {
    const word = error.stale && await renewed();
    if (!word) throw error;
    data.set("nonce", word);
    await post(target, data);
    sent();
    if (!unsent.size && !field.value.trim()) location.reload();
  }
}

async function renewed() {
  try {
    const reply = await fetch(location.pathname, { redirect: "manual", signal: AbortSignal.timeout(30000) });
    if (!reply.ok) return "";
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    return page.getElementById("log").dataset.who === who ? page.querySelector("#say [name=nonce]").value : "";
  } catch {
    return "";
  }
}

// Shows a message that is on its way, until the server's own item takes its place; it has the same name.
function keep(message) {
  if (document.getElementById(message.key)) { taken(message.key); return; }
  document.getElementById("nothing")?.remove();
  log.append(message.item);
}

function taken(key) {
  unsent.delete(key);
  kept.drop(key.slice(1));
}

// Sends what the connection lost, in its order, once there is one again.
async function resend() {
  for (const message of [...unsent.values()]) if (message.lost) await deliver(message);
}

async function deliver(message) {
  const { item, key, target, data } = message;
  message.lost = false;
  item.classList.remove("failed");
  item.setAttribute("aria-busy", "true");
  try {
    await send(target, data, () => taken(key));
  } catch (error) {
    // It may have arrived after all: then its item has come with the stream.
    if (unsent.has(key)) {
      message.lost = Boolean(error.lost);
      fail(message, error.message);
      if (error.over) signIn(item.querySelector(".reason"));
      bottom();
    }
  }
  item.removeAttribute("aria-busy");
}

function fail({ item }, reason) {
  item.classList.add("failed");
  item.querySelector(".reason").textContent = reason;
}

function waiting(word, text, files, data) {
  data.set("once", word);
  const item = document.createElement("article");
  item.className = "item mine unsent";
  item.append(...document.getElementById("sending").cloneNode(true).childNodes);
  const message = { key: `u${word}`, item, target: form.getAttribute("action"), data, lasts: !files.length && kept.put(word, text) };
  item.id = message.key;
  item.querySelector(".words").textContent = text;
  if (files.length) item.querySelector(".words").append(preview(files));
  item.querySelector(".again").addEventListener("click", () => deliver(message));
  item.querySelector(".drop").addEventListener("click", () => { taken(message.key); item.remove(); field.focus(); });
  unsent.set(message.key, message);
  keep(message);
  return message;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const target = event.submitter?.getAttribute("formaction") ?? form.getAttribute("action");
  if (target.endsWith("/stop")) {
    const turn = log.querySelector(".growing[id^=t]:not(#typing)")?.id ?? "";
    act(target, new URLSearchParams({ nonce: form.elements.nonce.value, turn }), stop);
    return;
  }
  const text = field.value;
  if (!text.trim() && !chosen.length) return;
  if (isPast()) { log.replaceChildren(); catchUp(); }
  const message = waiting(once(), text.trim(), chosen, new FormData(form));
  field.value = "";
  sessionStorage.removeItem(draft);
  choose([]);
  state.textContent = "";
  pinned = true;
  bottom();
  deliver(message);
  field.focus();
});

// A button keeps its word until the server has taken it, so that pressing again sends nothing twice.
async function act(target, data, button) {
  if (button.getAttribute("aria-disabled") === "true") return;
  button.dataset.once ??= once();
  data.set("once", button.dataset.once);
  button.setAttribute("aria-disabled", "true");
  try {
    await send(target, data, () => { delete button.dataset.once; state.textContent = ""; });
  } catch (error) {
    if (error.over) signIn(state);
    else state.textContent = error.message;
  }
  button.removeAttribute("aria-disabled");
}

log.addEventListener("submit", (event) => {
  event.preventDefault();
  act(event.target.getAttribute("action"), new URLSearchParams(new FormData(event.target, event.submitter)), event.submitter);
});

// Where fingers type, Enter makes a line, and the button sends.
const touched = matchMedia("(pointer: coarse)");
field.addEventListener("keydown", (event) => {
  // Safari ends a composition before the key that ended it; its code tells.
  if (event.defaultPrevented) return;
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229 && !touched.matches) {
    event.preventDefault();
    form.requestSubmit(document.getElementById("send"));
  }
});
field.addEventListener("input", () => sessionStorage.setItem(draft, field.value));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || stop.hidden) return;
  // It belongs to what is open, or to the field it is pressed in.
  if (document.querySelector(":popover-open") || (event.target !== field && event.target.matches("input, textarea, select"))) return;
  form.requestSubmit(stop);
});

log.addEventListener("scroll", () => {
  pinned = !isPast() && log.scrollHeight - log.scrollTop - log.clientHeight < 80;
});
addEventListener("beforeunload", (event) => {
  if ([...unsent.values()].some(({ item, lasts }) => !lasts && item.classList.contains("failed"))) event.preventDefault();
});

document.querySelector(".talks details").open = matchMedia("(min-width: 60rem)").matches;
for (const { word, text } of kept.list()) {
  const data = new FormData(form);
  data.set("text", text);
  fail(waiting(word, text, [], data), log.dataset.unsent);
}
shown();
sought?.scrollIntoView();
join();
