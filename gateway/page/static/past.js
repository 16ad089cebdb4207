// Earlier and later messages of a conversation, loaded as one scrolls to them. What is on the screen stays where it is.
const pane = document.getElementById("log");

function parsed(html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  return made.content;
}

// Whether messages follow that are not shown.
const isPast = () => document.getElementById("later") !== null;

function still(change) {
  const top = pane.getBoundingClientRect().top;
  const mark = [...pane.querySelectorAll(".item")].find((item) => item.getBoundingClientRect().bottom > top);
  const before = mark?.getBoundingClientRect().top;
  change();
  const now = mark?.id ? document.getElementById(mark.id) : null;
  if (now) pane.scrollTop += now.getBoundingClientRect().top - before;
}

// Two parts of one day have it twice.
function days() {
  let last = "";
  for (const day of pane.querySelectorAll(".day")) {
    if (day.textContent === last) day.remove();
    else last = day.textContent;
  }
}

const edges = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) if (isIntersecting) loadPart(target);
}, { root: pane, rootMargin: "800px 0px" });

function watchEdges() {
  for (const edge of pane.querySelectorAll(":scope > .more")) edges.observe(edge);
}

async function loadPart(edge) {
  edges.unobserve(edge);
  const { way, from } = edge.dataset;
  const { log: address, of } = pane.dataset;
  let part;
  try {
    const asked = new URLSearchParams({ of, [way]: from });
    const reply = await fetch(`${address}?${asked}`, { redirect: "manual", signal: AbortSignal.timeout(30000) });
    if (reply.status !== 200) return;
    part = parsed((await reply.json()).html);
  } catch {
    // The link stays, and leads there.
    return;
  }
  if (!edge.isConnected) return;
  for (const item of part.querySelectorAll(".item")) if (document.getElementById(item.id)) item.remove();
  part.querySelector(way === "before" ? "#later" : "#earlier")?.remove();
  still(() => { edge.replaceWith(part); days(); });
  shown();
  // From here on the stream brings what comes.
  if (way === "after" && !isPast()) catchUp();
}

// Puts the last messages in their place. What was loaded before them stays, if they follow it.
function showLast(html) {
  const part = parsed(html);
  const first = part.querySelector(".item");
  const same = first && document.getElementById(first.id);
  if (same) {
    part.querySelector("#earlier")?.remove();
    while (same.nextSibling) same.nextSibling.remove();
    same.remove();
  } else pane.replaceChildren();
  pane.append(part);
  days();
}
