// Puts what is new into a page that is served, so that the reader's place, what has the keyboard and the lists that were opened stay. Without scripts
// the page is loaded again as a whole.
"use strict";
(() => {
  const place = () => document.querySelector("[data-every]");
  const key = (node) => node.id || (node.dataset && node.dataset.key) || "";
  const fits = (have, want) => have && have.nodeName === want.nodeName && key(have) === key(want);

  // sync makes one element what another one is. Children with a key are found wherever they stood; of the others, the next one is taken.
  function sync(from, to) {
    if (from.nodeType !== Node.ELEMENT_NODE) {
      if (from.data !== to.data) from.data = to.data;
      return;
    }
    for (const { name } of [...from.attributes]) {
      if (name !== "open" && !to.hasAttribute(name)) from.removeAttribute(name);
    }
    for (const { name, value } of to.attributes) {
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    const keyed = new Map([...from.children].filter(key).map((child) => [key(child), child]));
    let at = from.firstChild;
    for (const want of to.childNodes) {
      const have = key(want) ? keyed.get(key(want)) : at;
      if (!fits(have, want)) {
        from.insertBefore(document.importNode(want, true), at);
      } else {
        if (have === at) at = at.nextSibling;
        else from.insertBefore(have, at);
        sync(have, want);
      }
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  // anchor is what the reader looks at: what has the keyboard if it is in sight, else the workload at the head of the window.
  function anchor() {
    const seen = (e) => e.getBoundingClientRect().bottom > 0 && e.getBoundingClientRect().top < innerHeight;
    const active = document.activeElement;
    return active !== document.body && seen(active) ? active : [...document.querySelectorAll("article")].find(seen);
  }

  function show(page) {
    const active = document.activeElement, at = scrollY > 0 && anchor();
    const top = at && at.getBoundingClientRect().top;
    for (const part of ["header", "main"]) sync(document.querySelector(part), page.querySelector(part));
    document.title = page.title;
    if (active.isConnected && active !== document.activeElement) active.focus({ preventScroll: true }); // it was moved
    if (at && at.isConnected) scrollBy(0, at.getBoundingClientRect().top - top);
  }

  let timer, due = 0;
  async function again() {
    clearTimeout(timer);
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      const lost = document.getElementById("lost");
      if (lost.hidden) {
        lost.textContent = "kubectl memfit ui does not answer since " + new Date().toISOString().slice(0, 19) +
          "Z: it was stopped, or started anew with another address. Everything here is as it was before.";
        lost.hidden = false;
      }
    }
    plan();
  }

  function plan() {
    const every = Number(place().dataset.every);
    if (every > 0) {
      due = Date.now() + every * 1000;
      timer = setTimeout(() => document.hidden || again(), every * 1000);
    }
  }

  document.addEventListener("visibilitychange", () => document.hidden || Number(place().dataset.every) === 0 || Date.now() < due || again());
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-pause]");
    if (link) {
      event.preventDefault();
      history.replaceState(null, "", link.getAttribute("href"));
      again();
    }
  });
  plan();
})();
