"use strict";
// Tables: a click on a head sorts the rows, a field above a long one filters them.
(() => {
  const UNITS = { us: 1e-6, ms: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
  const key = (cell) => {
    const text = cell.textContent.trim();
    const [, digits, unit] = /^([-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([A-Za-z]*)/.exec(text) || [];
    return digits === undefined ? text.toLowerCase() : Number(digits.replaceAll(",", "")) * (UNITS[unit] || 1);
  };
  const compare = (a, b) => typeof a !== typeof b ? (typeof a === "number" ? -1 : 1) : a < b ? -1 : Number(a > b);
  for (const table of document.querySelectorAll(".scroll > table:not(.matrix)")) {
    const body = table.tBodies[0], rows = [...body.rows];
    if (!table.tHead || rows.length < 4) continue;
    const heads = [...table.tHead.rows[0].cells];
    for (const [at, head] of heads.entries()) {
      const sort = () => {
        const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
        body.append(...rows.sort((a, b) => way * compare(key(a.cells[at]), key(b.cells[at]))));
      };
      head.tabIndex = 0;
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    }
    if (rows.length < 12) continue;
    const filter = document.createElement("input");
    Object.assign(filter, { type: "search", className: "filter", placeholder: "filter rows", ariaLabel: "filter rows" });
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
    table.parentNode.before(filter);
  }
})();
(() => {
  const graph = document.getElementById("graph");
  if (!graph) return;
  const $ = (id) => document.getElementById(id);
  const view = $("view"), drawing = $("drawing"), map = $("map"), panel = $("panel"), matches = $("matches");
  const boxes = [...drawing.querySelectorAll(".box")];
  const operators = boxes.filter((box) => box.dataset.op !== undefined);
  const byIndex = new Map(operators.map((box) => [box.dataset.op, box]));
  const colourings = JSON.parse(graph.dataset.marks);
  const ONE = { width: drawing.width.baseVal.value, height: drawing.height.baseVal.value };
  const HOMES = new Map(boxes.map((box) => {
    const { e, f } = box.transform.baseVal.consolidate().matrix;
    return [box, { x: e, y: f }];
  }));
  const BOX = { width: Number(graph.dataset.box), height: 42 };
  const PITCH = Number(graph.dataset.pitch), MARGIN = Number(graph.dataset.margin);
  const DENSE = 56, LEGIBLE = 0.55; // the pitch in columns; the smallest zoom at which a box's words can be read
  let size = ONE, places = HOMES;
  let zoom = 1, chosen = null, shades = new Map(boxes.map((box) => [box, box.classList[1]]));

  // Columns: layers that follow each other, as in a newspaper. Every column shows its part of the arrows.
  const LAYERS = Math.round((ONE.height - BOX.height - 2 * MARGIN) / PITCH) + 1;
  const inColumns = (count) => {
    const rows = Math.ceil(LAYERS / count);
    return { count: Math.ceil(LAYERS / rows), rows, width: ONE.width * Math.ceil(LAYERS / rows),
             height: (rows - 1) * DENSE + BOX.height + 2 * MARGIN };
  };
  const arrows = $("arrows"), hidden = document.createElementNS(drawing.namespaceURI, "defs");
  const parts = document.createElementNS(drawing.namespaceURI, "g");
  const arrange = ({ count, rows, width, height }) => {
    size = { width, height };
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    parts.replaceChildren();
    places = count === 1 && height === ONE.height ? HOMES : new Map(boxes.map((box) => {
      const { x, y } = HOMES.get(box), layer = Math.round((y - MARGIN) / PITCH), column = Math.floor(layer / rows);
      return [box, { x: x + column * ONE.width, y: MARGIN + (layer - column * rows) * DENSE }];
    }));
    for (const box of boxes) box.setAttribute("transform", `translate(${places.get(box).x} ${places.get(box).y})`);
    if (places === HOMES) { drawing.prepend(arrows); hidden.remove(); parts.remove(); return; }
    hidden.replaceChildren(arrows);
    drawing.prepend(hidden, parts);
    const above = (PITCH - BOX.height) / 2, ratio = DENSE / PITCH;
    for (let column = 0; column < count; column++) {
      const part = document.createElementNS(drawing.namespaceURI, "svg");
      const use = document.createElementNS(drawing.namespaceURI, "use");
      use.setAttribute("href", "#arrows");
      const named = { x: column * ONE.width, y: MARGIN - above * ratio, width: ONE.width, height: rows * DENSE,
                      viewBox: `0 ${column * rows * PITCH + MARGIN - above} ${ONE.width} ${rows * PITCH}`,
                      preserveAspectRatio: "none" };
      for (const [name, value] of Object.entries(named)) part.setAttribute(name, value);
      part.append(use);
      parts.append(part);
    }
    for (const { x, y } of places.values()) { // boxes let their ground shine through
      const ground = document.createElementNS(drawing.namespaceURI, "rect");
      for (const [name, value] of Object.entries({ class: "ground", x, y, ...BOX, rx: 7 })) ground.setAttribute(name, value);
      parts.append(ground);
    }
  };
  const zoomFor = ({ width, height }) => Math.min((view.clientWidth - 4) / width, (view.clientHeight - 4) / height);
  const best = () => {
    map.style.display = "none"; // its place belongs to the picture
    const one = { count: 1, rows: LAYERS, ...ONE };
    let chosen = one;
    for (let count = 2; count <= Math.min(LAYERS, 24) && zoomFor(chosen) < 1; count++)
      if (zoomFor(inColumns(count)) > 1.1 * zoomFor(chosen)) chosen = inColumns(count);
    return chosen;
  };

  // Zoom: the picture gets larger and the frame scrolls it; the point in the middle stays where it is.
  const setZoom = (factor) => {
    const middle = [(view.scrollLeft + view.clientWidth / 2) / zoom, (view.scrollTop + view.clientHeight / 2) / zoom];
    zoom = Math.min(3, Math.max(0.05, factor));
    drawing.setAttribute("width", size.width * zoom);
    drawing.setAttribute("height", size.height * zoom);
    view.scrollTo(middle[0] * zoom - view.clientWidth / 2, middle[1] * zoom - view.clientHeight / 2);
    drawMap();
  };
  const show = (box) => {
    const { x, y } = places.get(box);
    view.scrollTo((x + BOX.width / 2) * zoom - view.clientWidth / 2, (y + BOX.height / 2) * zoom - view.clientHeight / 2);
  };

  // The mini-map: every box as a dot in its shade, and the frame's window.
  const ink = map.getContext("2d");
  const drawMap = () => {
    const most = Math.max(36, Math.min(110, view.clientWidth / 7));
    const scale = Math.min(0.3, most / size.width, (view.clientHeight - 4) / size.height);
    const width = Math.max(16, size.width * scale), height = Math.max(16, size.height * scale);
    const fine = window.devicePixelRatio || 1;
    map.hidden = size.width * zoom <= view.clientWidth && size.height * zoom <= view.clientHeight;
    map.style.display = map.hidden ? "none" : "";
    map.width = width * fine; map.height = height * fine;
    map.style.width = `${width}px`; map.style.height = `${height}px`;
    ink.scale(fine, fine);
    const colours = new Map();
    for (const box of boxes) {
      const shade = shades.get(box);
      if (!colours.has(shade)) colours.set(shade, getComputedStyle(box.querySelector("path") || box.querySelector("rect")).fill);
      const { x, y } = places.get(box);
      ink.fillStyle = colours.get(shade);
      ink.fillRect(x * scale, y * scale, Math.max(2, BOX.width * scale), Math.max(1.2, BOX.height * scale));
    }
    const style = getComputedStyle(view);
    ink.strokeStyle = style.color;
    ink.lineWidth = 1.5;
    ink.strokeRect(
      Math.max(0.75, view.scrollLeft / zoom * scale), Math.max(0.75, view.scrollTop / zoom * scale),
      Math.min(width - 1.5, view.clientWidth / zoom * scale), Math.min(height - 1.5, view.clientHeight / zoom * scale));
    map.scale = scale;
  };
  let waiting = false;
  const drawMapSoon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawMap(); });
  };
  const jump = (event) => {
    const frame = map.getBoundingClientRect();
    const [x, y] = [(event.clientX - frame.left) / map.scale, (event.clientY - frame.top) / map.scale];
    view.scrollTo(x * zoom - view.clientWidth / 2, y * zoom - view.clientHeight / 2);
  };
  map.addEventListener("pointerdown", (event) => { map.setPointerCapture(event.pointerId); jump(event); });
  map.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  view.addEventListener("scroll", drawMapSoon);
  window.addEventListener("resize", drawMapSoon);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMapSoon);

  // Drag with the mouse; a press that moves is no click.
  let grip = null;
  view.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0)
      grip = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop, moved: false };
  });
  window.addEventListener("pointermove", (event) => {
    if (!grip || !event.buttons) { grip = null; return; }
    const [x, y] = [event.clientX - grip.x, event.clientY - grip.y];
    grip.moved = grip.moved || Math.abs(x) + Math.abs(y) > 4;
    if (grip.moved) view.scrollTo(grip.left - x, grip.top - y);
  });
  view.addEventListener("click", (event) => {
    const box = event.target.closest(".box[data-op]");
    if (box && !(grip && grip.moved)) choose(box.dataset.op, { link: true });
    grip = null;
  });

  // Choosing an operator: its box and its arrows stand out, its panel is shown, and the address leads to it.
  const choose = (index, { link = false, look = false, focus = false } = {}) => {
    const box = byIndex.get(String(index));
    if (!box) return;
    if (chosen) { chosen.classList.remove("on"); chosen.setAttribute("tabindex", "-1"); }
    chosen = box;
    box.classList.add("on");
    box.setAttribute("tabindex", "0");
    const template = $(`panel-${index}`);
    if (template) panel.replaceChildren(template.content.cloneNode(true));
    panel.scrollTop = 0;
    if (look) show(box);
    if (focus) box.focus({ preventScroll: true });
    if (link) history.replaceState(null, "", `#op-${index}`);
  };
  const fromAddress = () => {
    const wanted = /^#op-(\d+)$/.exec(location.hash);
    if (!wanted) return false;
    choose(wanted[1], { look: true });
    graph.scrollIntoView({ block: "nearest" });
    return true;
  };
  window.addEventListener("hashchange", fromAddress);
  const step = (by) => {
    const at = operators.indexOf(chosen);
    const next = operators[Math.min(operators.length - 1, Math.max(0, at + by))];
    choose(next.dataset.op, { look: true, focus: true, link: true });
  };
  const keys = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  view.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in keys) { event.preventDefault(); step(keys[event.key]); }
    else if (event.key === "+" || event.key === "=") setZoom(zoom * 1.25);
    else if (event.key === "-") setZoom(zoom / 1.25);
    else if (event.key === "Enter") panel.focus();
  });

  // Colours.
  const select = $("colouring");
  const colour = (number) => {
    const { marks } = colourings[number];
    for (const box of operators) {
      const [shade, text] = marks[box.dataset.op] || ["clear", ""];
      box.classList.replace(shades.get(box), shade);
      shades.set(box, shade);
      box.querySelector(".value").textContent = text;
    }
    for (const legend of graph.querySelectorAll(".legend")) legend.hidden = legend.dataset.colouring !== String(number);
    drawMap();
  };
  if (select) select.addEventListener("change", () => colour(Number(select.value)));

  // Search: what does not match is dimmed; Enter goes from match to match.
  const find = $("find");
  let found = [], at = -1;
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? boxes.filter((box) => words.every((word) => box.dataset.find.includes(word))) : [];
    at = -1;
    for (const box of boxes) box.classList.toggle("dim", words.length > 0 && !found.includes(box));
    matches.textContent = words.length ? `${found.length} found` : "";
    if (found.length) show(found[0]);
  });
  find.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !found.length) return;
    at = (at + (event.shiftKey ? found.length - 1 : 1)) % found.length;
    matches.textContent = `${at + 1} of ${found.length}`;
    show(found[at]);
    if (found[at].dataset.op !== undefined) choose(found[at].dataset.op, { link: true });
  });

  $("nearer").addEventListener("click", () => setZoom(zoom * 1.25));
  $("farther").addEventListener("click", () => setZoom(zoom / 1.25));
  const fit = (layout = best()) => { arrange(layout); setZoom(Math.min(1.5, zoomFor(layout))); };
  $("whole").addEventListener("click", () => fit());
  $("plain").addEventListener("click", () => {
    arrange({ count: 1, rows: LAYERS, ...ONE });
    setZoom(1);
    if (chosen) show(chosen);
  });
  const first = best(); // in view at the start, if its words can be read
  if (zoomFor(first) >= LEGIBLE && first.count > 1) fit(first);
  else if (size.width > view.clientWidth) setZoom(Math.max(0.8, view.clientWidth / size.width));
  drawMap();
  if (!fromAddress()) choose(graph.dataset.focus || operators[0].dataset.op, { look: true });
})();
