"use strict";

// A search box that hides the rows without its words, and headers that sort.
for (const errors of document.querySelectorAll(".errors")) {
  const input = errors.querySelector("input");
  const output = errors.querySelector("output");
  const body = errors.querySelector("tbody");
  const headers = [...errors.querySelectorAll("thead th")];
  const rows = [...body.rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase().replace(/\s+/g, " ")]));

  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().trim().replace(/\s+/g, " ");
    for (const row of rows) row.hidden = !texts.get(row).includes(words);
    output.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  });

  const collator = new Intl.Collator(undefined, { numeric: true });
  const compare = (one, other) =>
    "value" in one.dataset
      ? one.dataset.value - other.dataset.value
      : collator.compare(one.textContent.trim(), other.textContent.trim());
  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      const ascends = header.getAttribute("aria-sort") !== "ascending";
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", ascends ? "ascending" : "descending");
      const sign = ascends ? 1 : -1;
      rows.sort((one, other) => sign * compare(one.cells[column], other.cells[column]));
      body.append(...rows);
    });
  });
}
