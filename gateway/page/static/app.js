// What waits for the person, in the title and on the app's badge; and notifications, where this browser's person has asked
// for them. There is no push: a closed page tells nobody anything.
const { waiting, notify, icon, new: newItem } = document.body.dataset;
const title = document.title;
// Milliseconds between two looks.
const PAUSE = 60000;
let waits = null;
let unread = 0;
let next = 0;

function count() {
  const all = (waits ?? 0) + unread;
  document.title = all ? `(${all}) ${title}` : title;
  if (all) navigator.setAppBadge?.(all).catch(() => {});
  else navigator.clearAppBadge?.().catch(() => {});
}

function announce(body, tag) {
  if (notify !== "1" || !document.hidden || window.Notification?.permission !== "granted") return;
  try {
    // Tabs that show the same tell it once, by its tag.
    new Notification(title, { body, icon, tag }).onclick = () => window.focus();
  } catch {
    // Chromium on Android wants a service worker for this.
  }
}

async function look() {
  try {
    const reply = await fetch(waiting, { redirect: "manual", signal: AbortSignal.timeout(30000) });
    if (reply.type === "opaqueredirect" || reply.status === 401) return;
    if (reply.ok) {
      const now = await reply.json();
      if (waits !== null && now.count > waits) announce(now.text, "waiting");
      waits = now.count;
      count();
    }
  } catch {
    // The next look may reach it.
  }
  clearTimeout(next);
  next = setTimeout(look, PAUSE);
}

document.addEventListener("came", ({ detail: item }) => {
  if (!document.hidden || !item?.matches(".theirs:not(.growing)")) return;
  unread += 1;
  count();
  announce(item.querySelector(".words")?.textContent.trim().slice(0, 120) || newItem, item.id);
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  unread = 0;
  look();
});

document.getElementById("notify")?.addEventListener("submit", async (event) => {
  if (event.submitter.value !== "1") return;
  event.preventDefault();
  const may = window.Notification ? await Notification.requestPermission() : "denied";
  if (may === "granted") {
    event.target.append(Object.assign(document.createElement("input"), { type: "hidden", name: "on", value: "1" }));
    event.target.submit();
  } else document.getElementById("may").textContent = document.getElementById("may").dataset.refused;
});

look();
