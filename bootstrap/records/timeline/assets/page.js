(() => {
  "use strict";
  const find = id => document.getElementById(id);
  const details = JSON.parse(find("details").textContent);
  const chart = find("chart"), canvas = find("canvas"), tip = find("tip");
  const rows = [...canvas.querySelectorAll(".row .track")].map(t => [...t.querySelectorAll("button")].sort((a, b) => a.offsetLeft - b.offsetLeft)).filter(r => r.length);
  let pinned = null, shown = null;

  // What is pointed at: only ever as text.
  const line = (name, className, text) => {
    const e = document.createElement(name);
    e.className = className;
    e.textContent = text;
    tip.append(e);
  };
  const show = (box, x) => {
    const d = details[box.dataset.n];
    tip.replaceChildren();
    line("b", "", d.title);
    line("p", "where", d.where);
    line("p", d.bad ? "wrong" : "times", d.state + " (" + d.times + ")");
    if (d.error) line("p", "wrong", d.error);
    if (d.advice) line("p", "advice", d.advice);
    for (const f of d.facts || []) line("p", "", f);
    if (d.log) line("pre", "", d.log);
    tip.hidden = false;
    shown = box;
    const r = box.getBoundingClientRect(), c = chart.getBoundingClientRect(), pad = 12;
    if (x === undefined) x = Math.max(r.left, c.left);
    tip.style.left = Math.max(pad, Math.min(x, innerWidth - tip.offsetWidth - pad)) + "px";
    const below = r.bottom + 8;
    tip.style.top = (below + tip.offsetHeight + pad <= innerHeight ? below : Math.max(pad, r.top - tip.offsetHeight - 8)) + "px";
    const log = tip.querySelector("pre");
    if (log) log.scrollTop = log.scrollHeight;
  };
  const hide = () => {
    tip.hidden = true;
    tip.classList.remove("pinned");
    pinned = shown = null;
  };
  const boxOf = e => e.target instanceof Element ? e.target.closest("button[data-n]") : null;
  canvas.addEventListener("pointerover", e => { const b = boxOf(e); if (!pinned && e.pointerType === "mouse") b ? show(b, e.clientX + 10) : hide(); });
  canvas.addEventListener("pointerleave", () => { if (!pinned) hide(); });
  canvas.addEventListener("focusin", e => { const b = boxOf(e); if (b) { move(b); if (!pinned) show(b); } });
  canvas.addEventListener("focusout", () => { if (!pinned) hide(); });
  addEventListener("click", e => {
    const b = boxOf(e);
    if (!b) { if (!tip.contains(e.target)) hide(); return; }
    if (pinned === b) { hide(); return; }
    hide();
    show(b, e.detail ? e.clientX + 10 : undefined);
    pinned = b;
    tip.classList.add("pinned");
  });
  addEventListener("keydown", e => { if (e.key === "Escape") hide(); });
  for (const what of [chart, window]) what.addEventListener("scroll", () => { // what has the focus scrolls into view itself
    if (shown && shown === document.activeElement && !pinned) show(shown);
    else if (!pinned) hide();
  }, { passive: true });

  // One stop for the tabulator, and the arrow keys from there.
  let current = null;
  const move = b => {
    if (current) current.tabIndex = -1;
    current = b;
    b.tabIndex = 0;
  };
  for (const row of rows) for (const b of row) b.tabIndex = -1;
  if (rows.length) move(rows[0][0]);
  const near = (row, b) => row.reduce((best, o) => Math.abs(o.offsetLeft - b.offsetLeft) < Math.abs(best.offsetLeft - b.offsetLeft) ? o : best);
  chart.addEventListener("keydown", e => {
    if (e.target === chart && e.key === "Enter" && current) { current.focus(); return; }
    if (e.key === "+" || e.key === "-") { zoom(e.key === "+" ? 2 : .5); return; }
    const b = boxOf(e);
    if (!b) return;
    const r = rows.findIndex(row => row.includes(b)), i = rows[r].indexOf(b);
    const to = { ArrowRight: rows[r][i + 1], ArrowLeft: rows[r][i - 1], Home: rows[r][0], End: rows[r][rows[r].length - 1],
      ArrowDown: rows[r + 1] && near(rows[r + 1], b), ArrowUp: rows[r - 1] && near(rows[r - 1], b) }[e.key];
    if (!to) return;
    e.preventDefault();
    hide();
    to.focus({ preventScroll: true });
    to.scrollIntoView({ block: "nearest", inline: "nearest" });
    show(to);
  });

  // Magnification keeps what is in the middle there.
  let factor = 1;
  const zoom = by => {
    const wanted = by === 0 ? 1 : Math.min(16, Math.max(1, factor * by));
    const name = canvas.querySelector(".host").offsetWidth, seen = chart.clientWidth - name;
    const middle = (chart.scrollLeft + seen / 2) / (canvas.offsetWidth - name);
    factor = wanted;
    canvas.style.setProperty("--zoom", factor);
    canvas.dataset.zoom = factor;
    find("factor").textContent = factor + "×";
    find("out").disabled = find("fit").disabled = factor === 1;
    find("in").disabled = factor === 16;
    chart.scrollLeft = middle * (canvas.offsetWidth - name) - seen / 2;
  };
  find("in").addEventListener("click", () => zoom(2));
  find("out").addEventListener("click", () => zoom(.5));
  find("fit").addEventListener("click", () => zoom(0));
  zoom(0);
})();
