// The list of conversations, a message said in other words, the list of commands, and keys. Shares the names of chat.js.
const talks = document.getElementById("talks");
const list = document.getElementById("commands");

// The list of conversations ----------------------------------------------------------------------------------------

let relisting = null;
// What was said is in the list once its turn has begun.
function relist() {
  relisting ??= setTimeout(async () => {
    relisting = null;
    if (document.visibilityState !== "visible") { document.addEventListener("visibilitychange", relist, { once: true }); return; }
    const asked = new URLSearchParams(location.search);
    asked.set("of", of);
    const reply = await fetch(`${talks.dataset.from}?${asked}`, { redirect: "manual" }).catch(() => null);
    if (!reply?.ok) return;
    const fresh = await reply.text();
    const focused = talks.contains(document.activeElement) && document.activeElement.getAttribute("href");
    talks.innerHTML = fresh;
    if (focused) [...talks.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
    const name = talks.querySelector("[aria-current]");
    const title = document.querySelector(".about summary strong");
    if (name && title) title.textContent = name.textContent;
    // All that was said here was forgotten, in another tab or on another page.
    if (!name && log.querySelector(".item:not(.unsent)")) catchUp();
  }, 400);
}

// Another version --------------------------------------------------------------------------------------------------

// A form keeps its word until it is taken, so that one press makes one branch however often it is repeated.
async function goOn(form, button) {
  if (form.dataset.busy) return;
  form.dataset.busy = "1";
  form.dataset.once ??= once();
  const data = new URLSearchParams(new FormData(form, button));
  data.set("once", form.dataset.once);
  if (button) button.setAttribute("aria-disabled", "true");
  try {
    const reply = await fetch(form.getAttribute("action"), { method: "POST", body: data, headers: { "X-Remora": "1" }, redirect: "manual" });
    const said = (await reply.text()).trim();
    if (reply.ok) { location.assign(said); return; }
    state.textContent = said.slice(0, 500) || log.dataset.failed;
  } catch {
    state.textContent = log.dataset.failed;
  }
  delete form.dataset.busy;
  button?.removeAttribute("aria-disabled");
}

async function reword(link) {
  const { id } = link.closest(".item");
  const reply = await fetch(link.getAttribute("href"), { redirect: "manual", headers: { "X-Remora": "1" } }).catch(() => null);
  if (!reply?.ok) { state.textContent = (await reply?.text())?.trim().slice(0, 500) || log.dataset.failed; return; }
  const edit = new DOMParser().parseFromString(await reply.text(), "text/html").querySelector("form.edit");
  // Meanwhile another item may have taken its place.
  const item = document.getElementById(id);
  if (!item || item.querySelector("form.edit")) return;
  putEdit(item, edit);
  const text = edit.elements.text;
  text.focus();
  text.setSelectionRange(text.value.length, text.value.length);
}

function unreword(edit) {
  const item = edit.closest(".item");
  item.querySelector(".words").hidden = item.querySelector(".foot").hidden = false;
  edit.remove();
  item.querySelector(".reword").focus();
}

log.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.target.closest("a.reword, form.edit a.leave");
  if (!link) return;
  event.preventDefault();
  if (link.className === "reword") reword(link);
  else unreword(link.closest("form"));
});
log.addEventListener("submit", (event) => {
  if (!event.target.classList.contains("leads")) return;
  event.preventDefault();
  event.stopPropagation();
  goOn(event.target, event.submitter);
}, true);
// Other words are another message.
log.addEventListener("input", (event) => { delete event.target.form?.dataset.once; });
log.addEventListener("keydown", (event) => {
  const edit = event.target.closest("form.edit");
  if (!edit || event.isComposing || event.keyCode === 229) return;
  if (event.key === "Escape") { event.stopPropagation(); unreword(edit); }
  if (event.key === "Enter" && !event.shiftKey && event.target.matches("textarea") && !touched.matches) {
    event.preventDefault();
    if (!event.repeat) edit.requestSubmit();
  }
});

// Commands ---------------------------------------------------------------------------------------------------------

let commands = null;
let marked = -1;
const offered = () => [...list.children];

async function known() {
  if (commands) return commands;
  const reply = await fetch(list.dataset.from, { redirect: "manual" });
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  commands = [...page.querySelectorAll(".commands > [data-name]")].map((item, at) => {
    const made = document.createElement("li");
    made.append(...item.childNodes);
    Object.assign(made, { id: `command-${at}`, role: "option" });
    made.setAttribute("role", "option");
    made.dataset.name = item.dataset.name;
    return made;
  });
  return commands;
}

function mark(at) {
  const options = offered();
  marked = options.length ? (at + options.length) % options.length : -1;
  options.forEach((option, n) => option.setAttribute("aria-selected", String(n === marked)));
  if (marked < 0) { field.removeAttribute("aria-activedescendant"); return; }
  field.setAttribute("aria-activedescendant", options[marked].id);
  options[marked].scrollIntoView({ block: "nearest" });
}

function putAway() {
  list.hidden = true;
  list.replaceChildren();
  mark(-1);
}

async function offer() {
  const begun = /^\/([a-z]*)$/i.exec(field.value)?.[1].toLowerCase();
  if (begun === undefined) { if (!list.hidden) putAway(); return; }
  let all;
  try { all = await known(); } catch { return; }
  if (!field.value.startsWith("/")) return;
  const first = all.filter((option) => option.dataset.name.startsWith(begun));
  const words = begun.length > 1 ? all.filter((option) => !first.includes(option) && ` ${option.textContent.toLowerCase()}`.includes(` ${begun}`)) : [];
  list.replaceChildren(...first, ...words);
  list.hidden = !list.children.length;
  mark(0);
}

function take(option) {
  field.value = `/${option.dataset.name} `;
  field.dispatchEvent(new Event("input"));
  putAway();
  field.focus();
}

field.setAttribute("aria-autocomplete", "list");
field.setAttribute("aria-controls", "commands");
field.addEventListener("input", offer);
field.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== field) putAway(); }, 200));
list.addEventListener("pointerdown", (event) => event.preventDefault());
list.addEventListener("click", (event) => { const option = event.target.closest("li"); if (option) take(option); });
field.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) return;
  if (list.hidden) {
    if (event.key === "ArrowUp" && !field.value) {
      const last = [...log.querySelectorAll("a.reword")].at(-1);
      if (last) { event.preventDefault(); reword(last); }
    }
    return;
  }
  const whole = field.value.slice(1).toLowerCase();
  const option = offered()[marked];
  const act = {
    ArrowDown: () => mark(marked + 1), ArrowUp: () => mark(marked - 1), Escape: putAway, Tab: () => take(option),
    // A command that is typed whole is sent by Enter.
    Enter: option?.dataset.name === whole ? null : () => take(option),
  }[event.key];
  if (!act || event.shiftKey || !option) { if (event.key === "Enter") putAway(); return; }
  event.preventDefault();
  event.stopPropagation();
  act();
}, true);

// Keys -------------------------------------------------------------------------------------------------------------

const keyed = (keys) => document.querySelector(`[aria-keyshortcuts="${keys}"]`);
for (const line of document.querySelectorAll("#keys [data-for]")) line.hidden = !keyed(line.dataset.for);

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.defaultPrevented) return;
  const typing = event.target.closest?.("input, textarea, select");
  if ((event.key === "?" && !typing) || (event.key === "/" && event.ctrlKey)) {
    event.preventDefault();
    document.getElementById("keys").togglePopover();
    return;
  }
  if (!event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !event.code.startsWith("Key")) return;
  const found = keyed(`Alt+${event.code.slice(3)}`);
  if (!found) return;
  event.preventDefault();
  if (found.matches("input, textarea")) { found.closest("details")?.setAttribute("open", ""); found.focus(); found.select(); }
  else found.click();
});
