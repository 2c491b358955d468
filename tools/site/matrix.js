// Operators by runtimes: colours by what cells hold, and filters by operator, runtime, type and result.
(() => {
  const first = document.querySelector('.md-typeset table a[id^="op-"]');
  if (!first || !/runtimes\.html$/.test(location.pathname)) return;
  const table = first.closest("table");
  table.dataset.matrix = "";
  const kinds = { "=": "same", "≠": "other", "–": "none" };
  const names = [...table.querySelectorAll("thead th")].map(cell => cell.textContent.trim());
  const rows = [...table.tBodies[0].rows].map(row => ({
    row,
    name: row.cells[0].textContent.trim(),
    cells: [...row.cells].slice(1).map(cell => {
      const text = cell.textContent.trim(), kind = kinds[text[0]] || "none";
      cell.classList.add(kind);
      return { kind, types: text.split(/\s+/).slice(1), cell };
    }),
  }));
  const types = [...new Set(rows.flatMap(({ cells }) => cells.flatMap(cell => cell.types)))]
    .filter(type => !["most", "types"].includes(type)).sort();
  const bar = document.createElement("form");
  bar.className = "filters";
  const field = (label, control) => {
    const around = document.createElement("label");
    around.append(label, control);
    bar.append(around);
    return control;
  };
  const choice = (label, options) => {
    const control = document.createElement("select");
    for (const [value, text] of options) control.append(new Option(text, value));
    return field(label, control);
  };
  const find = field("operator", Object.assign(document.createElement("input"), { type: "search", placeholder: "CONV" }));
  const runtime = choice("runtime", [["", "all"], ...names.slice(1).map((name, index) => [index, name])]);
  const kind = choice("result", [["", "any"], ["same", "= the same"], ["other", "≠ other bits"], ["none", "– no kernel"]]);
  const type = choice("type", [["", "any"], ...types.map(name => [name, name])]);
  const count = document.createElement("output");
  bar.append(count);
  bar.addEventListener("submit", event => event.preventDefault());
  const show = () => {
    const words = find.value.trim().toUpperCase(), at = runtime.value;
    let shown = 0;
    for (const { row, name, cells } of rows) {
      const chosen = at === "" ? cells : [cells[at]];
      const fits = cell => (!kind.value || cell.kind === kind.value)
        && (!type.value || cell.types.includes(type.value) || cell.types[0] === "most");
      row.hidden = !(name.toUpperCase().includes(words) && ((!kind.value && !type.value) || chosen.some(fits)));
      shown += !row.hidden;
      cells.forEach(({ cell }, index) => { cell.hidden = at !== "" && index !== Number(at); });
    }
    [...table.querySelectorAll("thead th")].forEach((cell, index) => { cell.hidden = index > 0 && at !== "" && index - 1 !== Number(at); });
    count.textContent = `${shown} of ${rows.length} operators`;
  };
  bar.addEventListener("input", show);
  const place = table.closest(".md-typeset__scrollwrap") || table;
  place.before(bar);
  show();
})();
