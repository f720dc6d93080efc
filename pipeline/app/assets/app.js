// What the browser does itself: collect the page's state, keep its address, mark errors, drag, progress, downloads.
(function () {
  "use strict";
  const DEFAULTS = {hardware: "h100_sxm5", topology: "vendor", model: "dense", physics: "epoch2024", economics: "own_time",
                    precision: "auto"};
  const TEXT_LIMIT = 41; // one more than a field may hold: the server sees that it is too long, and no more
  const TYPING_MS = 300;
  const WAIT_MS = 2000; // a drag goes on without the last answer after this long
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const page = Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
  let revision = 0, answered = 0, sentAt = 0, queued = null, choice = null, collected = "";
  window.flopscapeIsIdle = () => answered >= revision && !queued;
  window.flopscapeWrite = (field, text) => { write(field, text); touch(0); };
  const none = () => window.dash_clientside.no_update;

  // The fields are read from the page itself: as inputs of a callback, hundreds of them would take Dash seconds.
  function state() {
    const [names, choices] = window.dash_clientside.callback_context.inputs_list;
    const found = new Map();
    for (const each of names) {
      found.set(each.id.configuration, {id: each.id.configuration, name: String(each.value ?? "").slice(0, 61), numbers: {}});
    }
    for (const each of choices) {
      const one = found.get(each.id.configuration);
      if (one && each.value) one[each.id.group] = String(each.value).slice(0, TEXT_LIMIT);
    }
    for (const field of document.querySelectorAll('.field input[type="text"]')) {
      const [configuration, name] = field.name.split(" ");
      const text = field.value.slice(0, TEXT_LIMIT).trim();
      if (found.has(configuration) && text) found.get(configuration).numbers[name] = text;
    }
    return Array.from(found.values());
  }

  let touches = 0, timer = null;
  function touch(wait_ms) {
    clearTimeout(timer);
    timer = setTimeout(() => window.dash_clientside.set_props("touched", {data: ++touches}), wait_ms);
  }

  function write(field, text) { // as if typed, so that React sees it too
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, text);
    field.dispatchEvent(new Event("input", {bubbles: true}));
  }

  function short(each) {
    const kept = {name: each.name};
    for (const [key, value] of Object.entries(DEFAULTS)) if (each[key] && each[key] !== value) kept[key] = each[key];
    if (Object.keys(each.numbers).length) kept.numbers = each.numbers;
    return kept;
  }

  let items = new Map();
  function showErrors() {
    for (const place of document.querySelectorAll("[data-error]")) {
      const [configuration, name] = place.dataset.error.split(" ");
      const item = items.get(configuration);
      const text = item ? item.errors[name] || (name === "" ? item.note || "" : "") : "";
      if (place.textContent !== text) place.textContent = text;
    }
  }

  function flush() {
    if (!queued) return;
    const {field, text} = queued;
    queued = null;
    write(field, text);
    touch(0);
  }

  // Fields are built here from what the server says of them; what is typed stays with the block's token, so that it
  // survives when React moves a card.
  const typed = new Map();

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function field(spec, one) {
    const identity = spec.configuration + " " + one.name;
    const unit = element("span", {className: "unit", textContent: one.unit ? " " + one.unit : ""});
    const value = typed.get(spec.token)[one.name] ?? one.value;
    const parts = [
      element("label", {htmlFor: identity}, one.label, unit),
      element("input", {type: "text", id: identity, name: identity, placeholder: one.placeholder, value, autocomplete: "off",
                        spellcheck: false}),
    ];
    if (one.slider) {
      const [min, max, step, at] = one.slider;
      const slider = element("input", {type: "range", name: "slider " + identity, min, max, step});
      slider.value = at; // after its bounds
      slider.setAttribute("aria-label", "drag " + one.label);
      parts.push(slider);
    }
    const error = element("div", {className: "error"});
    error.dataset.error = identity;
    error.setAttribute("role", "alert");
    const explanation = element("div", {className: "explanation", textContent: one.explanation});
    explanation.setAttribute("role", "tooltip");
    return element("div", {className: "field", title: one.explanation}, ...parts, error, explanation);
  }

  function build(block) {
    const spec = JSON.parse(block.dataset.fields);
    block.dataset.built = spec.token;
    if (!typed.has(spec.token)) typed.set(spec.token, {});
    const group = (list) => element("div", {className: "fields"}, ...list.map((one) => field(spec, one)));
    const folded = spec.rest.length
      ? [element("details", {open: spec.is_open}, element("summary", {textContent: spec.more}), group(spec.rest))] : [];
    block.replaceChildren(group(spec.main), ...folded);
  }

  document.addEventListener("input", (event) => {
    const changed = event.target;
    const place = changed instanceof HTMLInputElement && changed.closest(".field");
    if (!place) return;
    if (changed.type === "text") {
      typed.get(changed.closest("[data-built]").dataset.built)[changed.name.split(" ")[1]] = changed.value;
      return touch(TYPING_MS);
    }
    const target = place.querySelector('input[type="text"]');
    queued = {field: target, text: Number((10 ** Number(changed.value)).toPrecision(3)).toString()};
    if (answered >= revision || Date.now() - sentAt > WAIT_MS) flush();
  });
  document.addEventListener("change", (event) => {
    if (event.target instanceof HTMLInputElement && event.target.type === "text" && event.target.closest(".field")) touch(0);
  });
  new MutationObserver(() => {
    let isNew = false;
    for (const block of document.querySelectorAll("[data-fields]")) {
      if (!block.firstChild || JSON.parse(block.dataset.fields).token !== block.dataset.built) {
        build(block);
        isNew = true;
      }
    }
    if (!isNew) return;
    showErrors();
    touch(0);
  }).observe(document.documentElement, {childList: true, subtree: true, attributes: true, attributeFilter: ["data-fields"]});

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
      const text = JSON.stringify(found);
      if (text === collected || (!found.length && !revision)) return none();
      collected = text;
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
    mark: function (answers) {
      if (!answers) return none();
      answered = Math.max(answered, answers.revision);
      document.documentElement.dataset.answered = answered;
      setTimeout(flush, 0);
      items = new Map(answers.items.map((each) => [each.id, each]));
      showErrors();
      return none();
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
