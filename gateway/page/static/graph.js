// The picture of names: moved by dragging, enlarged by two fingers, by buttons and by keys. Without it the picture scrolls.
"use strict";
{
  const picture = document.querySelector(".graph"), figure = picture && picture.closest("figure");
  const whole = picture ? picture.viewBox.baseVal : null;
  const width = whole ? whole.width : 0, height = whole ? whole.height : 0, fingers = new Map();
  let x = width / 2, y = height / 2, unit = 1, dragged = false;  // the middle, and the picture's units of a pixel

  const least = () => Math.max(width / picture.clientWidth, height / picture.clientHeight);
  const draw = () => {
    unit = Math.min(Math.max(unit, 0.3), least());
    const wide = picture.clientWidth * unit, high = picture.clientHeight * unit;
    x = wide >= width ? width / 2 : Math.min(Math.max(x, wide / 2), width - wide / 2);
    y = high >= height ? height / 2 : Math.min(Math.max(y, high / 2), height - high / 2);
    picture.setAttribute("viewBox", `${x - wide / 2} ${y - high / 2} ${wide} ${high}`);
    picture.classList.toggle("near", unit < least());
  };
  const zoom = (by) => { unit *= by; draw(); };
  const move = (right, down) => { x += right * unit; y += down * unit; draw(); };
  const apart = () => { const [one, other] = [...fingers.values()]; return Math.hypot(one.x - other.x, one.y - other.y); };

  if (picture) {
    picture.classList.add("moves");
    unit = Math.min(1.1, least());
    draw();
    new ResizeObserver(draw).observe(picture);
    const bar = document.createElement("div");
    bar.className = "zoom";
    for (const [sign, name, by] of [["+", figure.dataset.nearer, 0.7], ["−", figure.dataset.farther, 1 / 0.7], ["⤢", figure.dataset.whole, 1e3]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = sign;
      button.setAttribute("aria-label", name);
      button.addEventListener("click", () => zoom(by));
      bar.append(button);
    }
    figure.prepend(bar);
    picture.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, { x: event.clientX, y: event.clientY }); dragged = false; });
    picture.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const was = fingers.size === 2 ? apart() : 0;
      fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (was) zoom(was / Math.max(apart(), 1));
      else move(before.x - event.clientX, before.y - event.clientY);
      if (Math.hypot(event.clientX - before.x, event.clientY - before.y) > 2) dragged = true;
      picture.classList.add("held");
    });
    for (const end of ["pointerup", "pointercancel", "pointerleave"])
      picture.addEventListener(end, (event) => { fingers.delete(event.pointerId); picture.classList.remove("held"); });
    picture.addEventListener("click", (event) => { if (dragged) event.preventDefault(); }, true);
    picture.addEventListener("dragstart", (event) => event.preventDefault());
    picture.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;  // else the page scrolls
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15);
    }, { passive: false });
    figure.addEventListener("keydown", (event) => {
      const ways = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] };
      if (event.target !== figure || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 0.7 : 1 / 0.7);
      else if (ways[event.key]) move(...ways[event.key]);
      else return;
      event.preventDefault();
    });
  }
}
