// What is wrong with the layout of the page that is shown: a list of [check, what, where].
// Texts are the lines of text nodes as far as every scrolling ancestor shows them.
const complaints = [];
const said = (text) => text.replace(/\s+/g, " ").trim().slice(0, 60);
const place = (element) => {
  const names = [];
  for (let e = element; e && e !== document.body && names.length < 4; e = e.parentElement)
    names.unshift(e.tagName.toLowerCase() + (e.id ? `#${e.id}` : "") + (e.classList.length ? `.${[...e.classList].join(".")}` : ""));
  return names.join(" > ");
};
const complain = (check, what, element) => complaints.push([check, what, place(element)]);

const page = document.documentElement;
if (page.scrollWidth > page.clientWidth) complain("overflow", `${page.scrollWidth} of ${page.clientWidth} pixels`, page);

// Lines of text, with what of them is visible.
const hides = (style) => style.overflowX !== "visible" || style.overflowY !== "visible";
const scrolls = (style) => /auto|scroll/.test(style.overflowX);
const whole = (element) => {  // whether something tells the whole text
  for (let e = element; e && e !== document.body; e = e.parentElement)
    if (e.title || [...e.children].some((child) => child.tagName === "title")) return true;
  return false;
};
const lines = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, element = node.parentElement;
  if (!node.data.trim() || element.closest("script, style, template, title, select, .skip")) continue;
  if (element.closest("details:not([open])") && !element.closest("summary")) continue;
  if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const full of range.getClientRects()) {
    if (full.width < 1 || full.height < 1) continue;
    const seen = { left: full.left, right: full.right, top: full.top, bottom: full.bottom };
    for (let e = element; e && e !== page; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (!hides(style)) continue;
      const frame = e.getBoundingClientRect();
      if (!scrolls(style) && !whole(element) && (full.right > frame.right + 1.5 || full.left < frame.left - 1.5))
        complain("clipped", said(node.data), element);
      seen.left = Math.max(seen.left, frame.left); seen.right = Math.min(seen.right, frame.right);
      seen.top = Math.max(seen.top, frame.top); seen.bottom = Math.min(seen.bottom, frame.bottom);
    }
    const box = element.tagName === "text" && element.parentElement.querySelector("rect")?.getBoundingClientRect();
    if (box && (full.right > box.right || full.left < box.left)) complain("clipped", `outside its box: ${said(node.data)}`, element);
    const card = element.closest("section")?.getBoundingClientRect();
    if (card && seen.right - seen.left > 0 && (seen.right > card.right + 1 || seen.left < card.left - 1))
      complain("clipped", `outside its section: ${said(node.data)}`, element);
    const slack = 0.2 * full.height;  // glyphs fill less than their line
    seen.top += slack; seen.bottom -= slack;
    if (seen.right - seen.left > 2 && seen.bottom - seen.top > 2) lines.push({ ...seen, element, text: said(node.data) });
  }
  if (/^…|…$/.test(node.data.trim()) && !whole(element)) complain("clipped", `no title: ${said(node.data)}`, element);
}

// No two lines overlap.
lines.sort((a, b) => a.top - b.top);
lines.forEach((one, i) => {
  for (let j = i + 1; j < lines.length && lines[j].top < one.bottom - 1; j++) {
    const other = lines[j];
    if (Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1.5 && other.element !== one.element)
      complain("overlap", `${one.text} | ${other.text}`, one.element);
  }
});

// Contrast, by WCAG 2: colours are painted on one pixel to know their numbers.
const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
const known = new Map();
const numbers = (colour) => {
  if (!known.has(colour)) {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    known.set(colour, [r, g, b, a / 255]);
  }
  return known.get(colour);
};
const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
const ground = (element) => {
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    if (e.tagName === "text") {  // of a box in a drawing
      const behind = e.parentElement.querySelector("rect");
      if (behind) layers.push(getComputedStyle(behind).fill);
    }
    layers.push(getComputedStyle(e).backgroundColor);
  }
  const canvas = getComputedStyle(page).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches;
  return layers.reverse().reduce((below, layer) => over(numbers(layer), below), canvas ? [18, 18, 18, 1] : [255, 255, 255, 1]);
};
const light = (colour) => {
  const [r, g, b] = colour.map((value) => value / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
for (const element of new Set(lines.map((line) => line.element))) {
  const style = getComputedStyle(element), below = ground(element);
  let [r, g, b, a] = numbers(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
  for (let e = element; e; e = e.parentElement) a *= Number(getComputedStyle(e).opacity);
  const pair = [light(over([r, g, b, a], below)), light(below)];
  const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  if (ratio < (large ? 3 : 4.5)) complain("contrast", `${ratio.toFixed(2)}: ${said(element.textContent)}`, element);
}
return complaints;
