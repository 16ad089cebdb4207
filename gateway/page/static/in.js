// Whoever signs out leaves nothing that they typed in this browser.
if (location.search === "?left=1") {
  for (const store of [localStorage, sessionStorage]) {
    for (const name of Object.keys(store)) if (name.startsWith("remora ")) store.removeItem(name);
  }
}
// The code stands behind the # of the link, which browsers tell nobody. It goes out only when the button is pressed.
const form = document.getElementById("in");
const code = location.hash.slice(1);
if (code) {
  history.replaceState(null, "", "/in");
  const field = document.getElementById("code");
  const button = document.getElementById("go");
  field.value = code;
  fetch("/in/name", { method: "POST", body: new URLSearchParams({ code }) }).then(async (answer) => {
    if (!answer.ok) {
      field.value = "";
      const wrong = document.createElement("p");
      wrong.className = "wrong";
      wrong.setAttribute("role", "alert");
      wrong.textContent = form.dataset.wrong;
      form.before(wrong);
      return;
    }
    button.textContent = form.dataset.as.replace("\ue000", await answer.text());
    field.hidden = true;
    document.getElementById("code-label").hidden = true;
    button.focus();
  });
}
