// Tables: a click on a head sorts, the field filters, the button copies.

function numberOf(text) {
  const value = Number.parseFloat(text.replace(/[,\u2007\u2008\s]/g, "").replace("−", "-"));
  return Number.isNaN(value) ? null : value;
}

function sorted(rows, place, down) {
  const cells = rows.map((row) => row.cells[place]?.textContent.trim() ?? "");
  const numeric = cells.every((text) => text === "" || numberOf(text) !== null);
  const known = rows.map((row, number) => [numeric ? numberOf(cells[number]) : cells[number], row]);
  const empty = (value) => value === null || value === "";
  return known.sort(([a], [b]) => {
    if (empty(a) || empty(b)) return empty(a) - empty(b);
    const order = numeric ? a - b : a.localeCompare(b, "en", { numeric: true });
    return down ? -order : order;
  }).map(([, row]) => row);
}

function enhance(block) {
  const table = block.querySelector("table"), body = table?.tBodies[0];
  if (!body || !table.tHead) return;
  for (const [place, head] of [...table.tHead.rows[0].cells].entries()) {
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...sorted([...body.rows], place, down));
    };
    filled(head, { tabindex: 0, onclick: (click) => { if (!click.target.closest("button, a")) sort(); }, onkeydown: (key) => { if (key.key === "Enter") sort(); } }, []);
  }
  const count = element("span", { class: "caption" });
  const filter = element("input", { type: "search", placeholder: "filter", "aria-label": "filter the rows", oninput: () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of body.rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    count.textContent = words.length ? `${[...body.rows].filter((row) => !row.hidden).length} of ${body.rows.length}` : "";
  } });
  const copy = element("button", { type: "button", onclick: async () => {
    const rows = [table.tHead.rows[0], ...[...body.rows].filter((row) => !row.hidden)];
    const text = rows.map((row) => [...row.cells].map((cell) => cell.textContent.replace(/[\u2007\u2008]/g, "").trim().replace(/\s+/g, " ")).join("\t")).join("\n");
    copy.textContent = (await copied(text)) ? "copied" : "not copied";
    setTimeout(() => { copy.textContent = "copy"; }, 1500);
  } }, "copy");
  table.parentNode.before(element("div", { class: "tools" }, body.rows.length > 5 ? filter : "", count, copy));
  for (const cell of block.querySelectorAll("td.long > div")) filled(cell, { onclick: () => cell.classList.toggle("open") }, []);
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.body.appendChild(element("textarea"));
    area.value = text;
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
