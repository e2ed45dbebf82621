"use strict";
// Live parts, keys and selection. Every page works without this file, except that it does not update itself.

(() => {
  const status = document.getElementById("stream");
  const parts = () => document.querySelectorAll("[data-live]");

  // --- live parts: the server sends those that have changed, as HTML that it has escaped --------------------------

  const words = { on: "live", stale: "stale figures", off: "reconnecting" };
  const content = document.getElementById("content");

  function show(state) {
    status.textContent = words[state];
    status.className = "stream " + state;
  }

  // A part in which text is selected is replaced when the selection ends.
  const held = new Map();

  function isSelected(element) {
    const selection = getSelection();
    return !selection.isCollapsed && selection.containsNode(element, true);
  }

  document.addEventListener("selectionchange", () => {
    for (const [element, html] of [...held]) {
      if (isSelected(element)) continue;
      held.delete(element);
      replace(element, html);
    }
  });

  // A page whose job or queue is gone stays readable, but nothing on it can be used.
  function judge() {
    content.inert = document.querySelector("[data-gone]") !== null;
    show(document.querySelector("[data-live] .stale") ? "stale" : "on");
  }

  function replace(element, html) {
    if (isSelected(element)) {
      held.set(element, html);
      return;
    }
    held.delete(element);
    const made = document.createElement("template");
    made.innerHTML = html;
    if (made.innerHTML === element.innerHTML) return;
    const open = [...element.querySelectorAll("details")].map((one) => one.open);
    const picked = new Set([...element.querySelectorAll("input:checked")].map((one) => one.value));
    const focused = element.contains(document.activeElement) ? document.activeElement : null;
    const focusedAt = focused && [...element.querySelectorAll("a, button, input, summary")].indexOf(focused);
    const href = focused && focused.getAttribute("href");
    const tails = [...element.querySelectorAll(".tail")].map((one) => [one.scrollTop, one.scrollHeight]);
    element.replaceChildren(made.content);
    // Positions in a tail are counted from its end: 0 is the newest line. Other lines stay where they are.
    element.querySelectorAll(".tail").forEach((one, index) => {
      const [top, height] = tails[index] || [0, 0];
      if (top) one.scrollTop = top - (one.scrollHeight - height);
    });
    const details = element.querySelectorAll("details");
    if (details.length === open.length) details.forEach((one, index) => { one.open = open[index]; });
    for (const box of element.querySelectorAll("input[type=checkbox]")) box.checked = picked.has(box.value);
    if (focused) {
      const all = [...element.querySelectorAll("a, button, input, summary")];
      const again = (href && all.find((one) => one.getAttribute("href") === href)) || all[focusedAt];
      if (again) again.focus({ preventScroll: true });
    }
  }

  let stream = null;

  function connect() {
    if (stream || document.hidden) return;
    stream = new EventSource(location.href);
    stream.onopen = judge;
    stream.onmessage = (message) => {
      const changed = JSON.parse(message.data);
      if (changed.title !== undefined) {
        document.title = changed.title;
        document.querySelector("[data-title]").textContent = changed.title;
      }
      for (const element of parts()) {
        const html = changed[element.dataset.live];
        if (html !== undefined) replace(element, html);
      }
      judge();
      countPicked();
    };
    stream.onerror = () => {
      show("off");
      // The browser tries again by itself, except after an answer that is not a stream.
      if (stream.readyState === EventSource.CLOSED) {
        stream = null;
        setTimeout(connect, 2000);
      }
    };
  }

  function disconnect() {
    if (stream) stream.close();
    stream = null;
  }

  // A browser has six connections to a server for all tabs. So a hidden tab gives its own back, and gets all parts anew
  // with the first message after it is shown again.
  function follow() {
    document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
    addEventListener("pagehide", disconnect);
    addEventListener("pageshow", connect);
    connect();
  }

  // --- tabs: the current one is in view where they don't fit ---------------------------------------------------------

  const tab = document.querySelector(".tabs [aria-current]");
  if (tab) {
    const row = tab.parentElement;
    row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
  }

  // --- selection ----------------------------------------------------------------------------------------------------

  const all = document.getElementById("all");
  const boxes = () => [...document.querySelectorAll("input[name=id][type=checkbox]")];

  function countPicked() {
    if (!all) return;
    const picked = boxes().filter((box) => box.checked).length;
    all.checked = picked > 0 && picked === boxes().length;
    document.getElementById("all-words").textContent = picked ? `${picked} selected:` : "Selected jobs:";
  }

  if (all) {
    all.hidden = false;
    all.addEventListener("change", () => {
      for (const box of boxes()) box.checked = all.checked;
      countPicked();
    });
    document.addEventListener("change", (event) => { if (event.target.name === "id") countPicked(); });
    countPicked();
  }

  // --- keys ---------------------------------------------------------------------------------------------------------

  const help = document.getElementById("help");
  const helpButton = document.getElementById("help-button");
  if (helpButton) {
    helpButton.hidden = false;
    helpButton.addEventListener("click", () => help.showModal());
  }
  const rows = () => [...document.querySelectorAll("tr[data-row]")];
  const current = () => rows().findIndex((row) => row.contains(document.activeElement));

  function move(by) {
    const list = rows();
    const at = current();
    const row = list[at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + by, 0), list.length - 1)];
    const target = row && row.querySelector("td.id a, a");
    if (target) target.focus();
  }

  function pick() {
    const row = rows()[current()];
    const box = row && row.querySelector("input[type=checkbox]");
    if (box) {
      box.checked = !box.checked;
      countPicked();
    }
    return box;
  }

  function retry() {
    const button = document.querySelector("button[data-key=r]");
    if (!button) return;
    // Not form.id: that is the checkboxes, whose name is id.
    if (button.form.getAttribute("id") === "bulk" && !boxes().some((box) => box.checked) && !pick()) return;
    button.click();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || (help && help.open)) return;
    const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
    if (typing) {
      if (event.key === "Escape") typing.blur();
      return;
    }
    const search = document.querySelector("[data-search]");
    const keys = {
      "/": () => search && search.focus(),
      j: () => move(1),
      k: () => move(-1),
      x: pick,
      r: retry,
      g: () => { location.href = "./"; },
      "?": () => help && help.showModal(),
    };
    if (Object.hasOwn(keys, event.key)) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  if (status && document.body.dataset.stream && "EventSource" in window) follow();
})();
