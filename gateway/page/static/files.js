// What goes along with a message: chosen, pasted, dropped or recorded, shown before it is sent, and taken back. And
// answers that are read aloud. Pictures are drawn from their bytes, so that the page shows no address but its own.
const tray = document.getElementById("files");
const limits = document.getElementById("limits");
const within = limits.textContent;
const inputs = { file: form.elements.file, voice: form.elements.voice };
const recording = document.getElementById("record");
let chosen = [];

const size = (file) => file.size < 1e6 ? `${Math.ceil(file.size / 1e3)}\u202fkB` : `${(file.size / 1e6).toFixed(1)}\u202fMB`;

// What the inputs hold is what the form sends.
function choose(kept) {
  chosen = kept;
  for (const [field, input] of Object.entries(inputs)) {
    if (!input) continue;
    const held = new DataTransfer();
    for (const one of chosen) if (one.field === field) held.items.add(one.file);
    input.files = held.files;
  }
  limits.textContent = within;
  tray.replaceChildren(...(chosen.length ? [preview(chosen, true)] : []));
  tray.classList.toggle("full", chosen.length > 0);
}

function add(more, field = "file") {
  if (!inputs.file) return;
  const kept = [...chosen];
  const refused = [];
  for (const file of more) {
    const bytes = kept.reduce((sum, one) => sum + one.file.size, file.size);
    const fits = kept.length < tray.dataset.most && bytes <= tray.dataset.together && file.size > 0
      && !(file.type.startsWith("image/") && file.size > tray.dataset.picture);
    if (fits) kept.push({ file, field });
    else refused.push(`${file.name} (${size(file)})`);
  }
  choose(kept);
  if (refused.length) {
    limits.textContent = `${tray.dataset.refused} ${refused.join(", ")}. ${within}`;
    tray.classList.add("full");
  }
}

function preview(some, mayGo = false) {
  const shown = Object.assign(document.createElement("div"), { className: "sent" });
  for (const one of some) {
    const piece = Object.assign(document.createElement("span"), { className: "chip" });
    piece.append(one.field === "voice" ? tray.dataset.voice : one.file.name, " ");
    piece.append(Object.assign(document.createElement("small"), { textContent: size(one.file) }));
    if (["image/png", "image/jpeg", "image/gif", "image/webp"].includes(one.file.type)) draw(one.file, piece);
    if (mayGo) {
      const gone = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "×" });
      gone.setAttribute("aria-label", `${tray.dataset.remove} ${one.file.name}`);
      gone.addEventListener("click", () => { choose(chosen.filter((other) => other !== one)); field.focus(); });
      piece.append(gone);
    }
    shown.append(piece);
  }
  return some.length ? shown : "";
}

async function draw(file, piece) {
  try {
    const picture = await createImageBitmap(file, { resizeHeight: 320 });
    const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
    canvas.getContext("2d").drawImage(picture, 0, 0);
    picture.close();
    canvas.setAttribute("aria-hidden", "true");
    piece.prepend(canvas);
    bottom();
  } catch {
    // It is no picture; its name stands there.
  }
}

for (const [name, input] of Object.entries(inputs)) input?.addEventListener("change", () => add([...input.files], name));
field.addEventListener("paste", (event) => {
  const { files } = event.clipboardData;
  // Programs that copy text copy a picture of it, too.
  if (!files.length || event.clipboardData.types.includes("text/plain")) return;
  event.preventDefault();
  add([...files]);
});
const drags = (event) => inputs.file && event.dataTransfer?.types.includes("Files");
document.addEventListener("dragover", (event) => {
  if (!drags(event)) return;
  event.preventDefault();
  tray.classList.add("over");
});
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) tray.classList.remove("over"); });
document.addEventListener("drop", (event) => {
  tray.classList.remove("over");
  if (!drags(event)) return;
  event.preventDefault();
  add([...event.dataTransfer.files]);
});
addEventListener("beforeunload", (event) => { if (chosen.length) event.preventDefault(); });

// A voice --------------------------------------------------------------------------------------------------------

const KINDS = { "audio/webm": "webm", "audio/ogg": "ogg", "audio/mp4": "m4a" };
// Milliseconds of the longest recording, and bits of a second.
const LONGEST = 600000;
const BITS = 48000;
let recorder = null;
let asking = false;

async function record() {
  if (recorder) { recorder.stop(); return; }
  if (asking) return;
  asking = true;
  const type = Object.keys(KINDS).find((kind) => MediaRecorder.isTypeSupported(kind));
  let heard;
  let made;
  try {
    heard = await navigator.mediaDevices.getUserMedia({ audio: true });
    made = new MediaRecorder(heard, { mimeType: type, audioBitsPerSecond: BITS });
  } catch {
    heard?.getTracks().forEach((track) => track.stop());
    limits.textContent = tray.dataset.silent;
    tray.classList.add("full");
    return;
  } finally {
    asking = false;
  }
  recorder = made;
  const parts = [];
  const label = recording.querySelector("span");
  const before = label.textContent;
  const ending = setTimeout(() => made.stop(), LONGEST);
  made.ondataavailable = ({ data }) => parts.push(data);
  made.onstop = () => {
    clearTimeout(ending);
    recorder = null;
    heard.getTracks().forEach((track) => track.stop());
    recording.classList.remove("on");
    label.textContent = before;
    add([new File(parts, `voice.${KINDS[type]}`, { type })], "voice");
  };
  made.start();
  recording.classList.add("on");
  label.textContent = recording.dataset.stop;
}

// Browsers give the microphone only to pages with a certificate and to this machine's own.
if (recording && navigator.mediaDevices?.getUserMedia && window.MediaRecorder) {
  document.getElementById("voice").hidden = true;
  recording.hidden = false;
  recording.addEventListener("click", record);
}

// Aloud ----------------------------------------------------------------------------------------------------------

let reading = null;

function hush() {
  speechSynthesis.cancel();
  if (reading) reading.textContent = reading.dataset.name;
  reading = null;
}

function readAloud(button) {
  const again = button === reading;
  hush();
  if (again) return;
  const words = button.closest(".item").querySelector(".words");
  const text = words.cloneNode(true);
  text.querySelectorAll("pre, math, .copy, .sent, .note").forEach((part) => part.remove());
  // Some voices fall silent in the middle of what is long.
  const pieces = text.textContent.match(/[^.!?。！？\n]{1,200}[.!?。！？\n]*/gu) ?? [];
  button.dataset.name = button.textContent;
  button.textContent = log.dataset.hush;
  reading = button;
  pieces.forEach((piece, nth) => {
    const said = new SpeechSynthesisUtterance(piece);
    said.lang = words.lang || document.documentElement.lang;
    if (nth === pieces.length - 1) said.onend = () => { if (reading === button) hush(); };
    speechSynthesis.speak(said);
  });
}

if (window.speechSynthesis) {
  const voices = () => log.classList.toggle("speaks", speechSynthesis.getVoices().length > 0);
  voices();
  speechSynthesis.addEventListener("voiceschanged", voices);
  log.addEventListener("click", (event) => {
    const button = event.target.closest(".aloud");
    if (button) readAloud(button);
  });
  addEventListener("pagehide", () => speechSynthesis.cancel());
}
