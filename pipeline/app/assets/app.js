// What the browser does itself: collect the page's state, keep its address, mark errors, drag, progress, downloads.
(function () {
  "use strict";
  const DEFAULTS = {hardware: "h100_sxm5", topology: "vendor", model: "dense", physics: "epoch2024", economics: "own_time",
                    precision: "auto"};
  const TEXT_LIMIT = 41; // one more than a field may hold: the server sees that it is too long, and no more
  const WAIT_MS = 2000; // a drag goes on without the last answer after this long
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const page = Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
  let revision = 0, answered = 0, sentAt = 0, queued = null, choice = null;
  window.flopscapeIsIdle = () => answered >= revision && !queued;
  const none = () => window.dash_clientside.no_update;

  function state() {
    const [names, choices, fields] = window.dash_clientside.callback_context.inputs_list;
    const found = new Map();
    for (const each of names) {
      found.set(each.id.configuration, {id: each.id.configuration, name: String(each.value ?? "").slice(0, 61), numbers: {}});
    }
    for (const each of choices) {
      const one = found.get(each.id.configuration);
      if (one && each.value) one[each.id.group] = String(each.value).slice(0, TEXT_LIMIT);
    }
    for (const each of fields) {
      const one = found.get(each.id.configuration);
      const text = String(each.value ?? "").slice(0, TEXT_LIMIT).trim();
      if (one && text) one.numbers[each.id.name] = text;
    }
    return Array.from(found.values());
  }

  function short(each) {
    const kept = {name: each.name};
    for (const [key, value] of Object.entries(DEFAULTS)) if (each[key] && each[key] !== value) kept[key] = each[key];
    if (Object.keys(each.numbers).length) kept.numbers = each.numbers;
    return kept;
  }

  function flush() {
    if (!queued) return;
    const {id, value} = queued;
    queued = null;
    window.dash_clientside.set_props(id, {value});
  }

  document.addEventListener("input", (event) => {
    const slider = event.target;
    if (!(slider instanceof HTMLInputElement) || slider.type !== "range" || !slider.id.includes('"slider"')) return;
    const id = Object.assign(JSON.parse(slider.id), {type: "field"});
    queued = {id, value: Number((10 ** Number(slider.value)).toPrecision(3)).toString()};
    if (answered >= revision || Date.now() - sentAt > WAIT_MS) flush();
  });

  document.addEventListener("keydown", (event) => { // arrows move between tabs, as screen readers expect
    const tab = event.target instanceof HTMLElement && event.target.closest('[role="tab"]');
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!tab || !step) return;
    const all = Array.from(tab.parentElement.children);
    const next = all[(all.indexOf(tab) + step + all.length) % all.length];
    next.focus();
    next.click();
  });

  setInterval(async () => {
    const working = document.getElementById("working");
    if (!working) return;
    const isLate = answered < revision && Date.now() - sentAt > 500;
    working.hidden = !isLate;
    if (queued && Date.now() - sentAt > WAIT_MS) flush();
    if (!isLate) return;
    try {
      const told = await (await fetch("progress/" + page)).json();
      const bar = document.getElementById("progress");
      if (told.done > 0) bar.value = Math.round(100 * told.done / told.total); else bar.removeAttribute("value");
    } catch (error) { /* the server has gone: the next request will say so */ }
  }, 300);

  window.dash_clientside = Object.assign({}, window.dash_clientside, {flopscape: {
    collect: function () {
      const found = state();
      if (!found.length && !revision) return none();
      revision += 1;
      sentAt = Date.now();
      return {page, revision, configurations: found};
    },
    address: function (current, tab) {
      if (!current) return none();
      const query = new URLSearchParams();
      query.set("c", JSON.stringify(current.configurations.map(short)));
      if (tab && tab !== "utilisation") query.set("tab", tab);
      history.replaceState(history.state, "", location.pathname + "?" + query);
      document.documentElement.dataset.count = current.configurations.length;
      return none();
    },
    mark: function (answers, ids) {
      if (!answers) return ids.map(() => "");
      answered = Math.max(answered, answers.revision);
      document.documentElement.dataset.answered = answered;
      setTimeout(flush, 0);
      const items = new Map(answers.items.map((each) => [each.id, each]));
      return ids.map((id) => {
        const item = items.get(id.configuration);
        if (!item) return "";
        return item.errors[id.name] || (id.name === "" ? item.note || "" : "");
      });
    },
    showTab: function (clicks, current, ids) {
      const trigger = window.dash_clientside.callback_context.triggered_id;
      const name = trigger && trigger.name ? trigger.name : current;
      setTimeout(() => window.dispatchEvent(new Event("resize")), 0);
      return [name === current ? none() : name, ids.map((id) => String(id.name === name)), ids.map((id) => id.name !== name)];
    },
    scheme: function (clicks) {
      if (clicks) choice = document.documentElement.dataset.scheme === "dark" ? "light" : "dark";
      const wanted = choice || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
      document.documentElement.dataset.scheme = wanted;
      return wanted;
    },
    figure: function () {
      const graph = document.querySelector(".panel:not([hidden]) .js-plotly-plot");
      if (graph) window.Plotly.downloadImage(graph, {format: "svg", filename: "flopscape", width: 1200, height: graph.clientHeight || 600});
      return none();
    },
    link: function () {
      if (navigator.clipboard) navigator.clipboard.writeText(location.href);
      return navigator.clipboard ? "Link copied" : "Copy the address above";
    },
    cancel: function () {
      fetch("cancel/" + page, {method: "POST"});
      return none();
    },
  }});
})();
