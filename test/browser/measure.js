// Measures a page for the tests.
"use strict";
window.measure = (() => {
  const named = (e) => e.tagName.toLowerCase() + (e.getAttribute("class") ? "." + e.getAttribute("class") : "") +
    " " + JSON.stringify((e.getAttribute("aria-label") || e.textContent).trim().replace(/\s+/g, " ").slice(0, 40));
  const shown = (e) => e.checkVisibility({ visibilityProperty: true });

  // Colors as numbers.
  const parts = (color) => {
    const n = (color.match(/[\d.]+/g) || []).map(Number);
    return { r: n[0], g: n[1], b: n[2], a: n.length > 3 ? n[3] : 1 };
  };
  const light = ({ r, g, b }) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (one, other) => {
    const [a, b] = [light(parts(one)), light(parts(other))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      const a = parts(color).a;
      if (a === 1) return color;
      if (a > 0) throw new Error("transparent backgrounds cannot be measured: " + named(at));
    }
    return "rgb(255, 255, 255)";
  };

  let count = 0;
  // lowContrast returns texts, lines and marks with too little contrast to their background.
  function lowContrast() {
    const out = new Set();
    const check = (e, color, against, least, what) => {
      count++;
      const ratio = contrast(color, against);
      if (!(ratio >= least)) out.add(`${what} ${named(e)}: ${ratio.toFixed(2)} (${color} on ${against})`);
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const e = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || e.closest("script, style, title") || !shown(e)) continue;
      const style = getComputedStyle(e);
      check(e, e.closest("svg") ? style.fill : style.color, behind(e), 4.5, "text");
    }
    for (const e of document.querySelectorAll("svg .line, svg .use")) {
      check(e, getComputedStyle(e).stroke, behind(e), 3, "line");
    }
    for (const svg of document.querySelectorAll("figure svg")) { // lines and marks on the area of use
      const area = getComputedStyle(svg.querySelector(".use")).fill;
      for (const e of svg.querySelectorAll(".line")) check(e, getComputedStyle(e).stroke, area, 3, "line on use");
      for (const e of svg.querySelectorAll(".mark")) check(e, getComputedStyle(e).stroke, area, 3, "mark on use");
    }
    for (const e of document.querySelectorAll("svg .mark")) check(e, getComputedStyle(e).stroke, behind(e), 3, "mark");
    return [...out];
  }

  // overflows returns elements outside the window's width, unless in scrollable containers, and overlapping texts.
  function overflows() {
    const root = document.documentElement, out = [];
    if (root.scrollWidth > root.clientWidth) out.push(`${root.scrollWidth} px of ${root.clientWidth}`);
    for (const e of document.body.querySelectorAll("*")) {
      const box = e.getBoundingClientRect();
      if (shown(e) && !e.closest("svg *, .wide *") && (box.right > root.clientWidth + 0.5 || box.left < -0.5)) out.push(named(e));
    }
    for (const svg of document.querySelectorAll("figure svg")) { // an svg clips its content
      const frame = svg.getBoundingClientRect();
      for (const e of svg.querySelectorAll("text")) {
        const box = e.getBoundingClientRect();
        if (box.left < frame.left - 0.5 || box.right > frame.right + 0.5 || box.bottom > frame.bottom + 0.5) {
          out.push("cut off: " + named(e));
        }
      }
      const texts = [...svg.querySelectorAll("text")].map((e) => { // letters do not fill the whole height of their line
        const { left, right, top, bottom, height } = e.getBoundingClientRect();
        return [e, { left, right, top: top + height / 5, bottom: bottom - height / 5 }];
      });
      texts.forEach(([e, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
        if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) {
          out.push(`overlapping: ${named(e)} and ${named(other)}`);
        }
      }));
    }
    return out;
  }

  // drawn returns the dashes, widths and shapes of each class of lines and marks.
  function drawn() {
    const ways = {};
    for (const e of document.querySelectorAll("svg .line, svg .mark")) {
      const style = getComputedStyle(e);
      const kind = e.classList.contains("line") ? "line" : "mark";
      const name = [kind, ...[...e.classList].filter((c) => c !== kind)].join(" ");
      const way = kind === "line" ? `${style.strokeDasharray} of ${style.strokeWidth}`
        : e.getAttribute("d").replace(/^M[\d.]+ [\d.]+/, "").replace(/^m0 0/, "");
      (ways[name] ||= new Set()).add(way);
    }
    return Object.fromEntries(Object.entries(ways).map(([name, set]) => [name, [...set].sort()]));
  }

  // focusable returns focusable elements from top to bottom, then from left to right; containers before their content.
  function focusable() {
    const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
      .filter((e) => shown(e) && e.tabIndex >= 0);
    const at = new Map(all.map((e) => [e, e.getBoundingClientRect()]));
    return all.sort((a, b) => {
      if (a.contains(b)) return -1;
      if (b.contains(a)) return 1;
      const [p, q] = [at.get(a), at.get(b)];
      return p.bottom <= q.top + 1 ? -1 : q.bottom <= p.top + 1 ? 1 : p.left - q.left;
    });
  }
  let order = [];
  function usable() {
    begin();
    order = focusable();
    return order.map(named);
  }
  // begin moves the focus before the first element.
  function begin() {
    scrollTo(0, 0);
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
  }
  function focus() {
    const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 &&
      contrast(style.outlineColor, behind(e.parentElement || e)) >= 3;
    return {
      Index: order.indexOf(e), Name: named(e),
      Visible: outlined && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    };
  }
  return { lowContrast, measured: () => count, overflows, drawn, usable, focus, begin };
})();
