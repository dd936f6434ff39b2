// The desk is complete without this file. It adds a theme switch, a guard against impatient
// fingers, ticking in ranges, keys, news of what changed meanwhile, and printing with everything
// open.
"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const make = (tag, text, into) => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    into?.append(element);
    return element;
  };
  const keep = (name, value) => {
    try {
      localStorage.setItem(name, value);
    } catch {
      // It then lasts as long as the page.
    }
  };
  const kept = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  };
  const themes = ["system", "light", "dark"];
  const words = { system: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
  const stored = () => (themes.includes(kept("theme")) ? kept("theme") : "system");
  const wear = (theme) => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
  };
  // Before the first paint, so that no page flashes.
  wear(stored());

  // A second press of the same form is not sent. The server would answer it with the first one's
  // result anyway; this only spares the person the doubt.
  const release = (form) => {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("[aria-disabled]")) button.removeAttribute("aria-disabled");
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    event.submitter?.setAttribute("aria-disabled", "true");
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) document.querySelectorAll("form[data-sent]").forEach(release);
  });

  // An open menu closes when the person turns to something else.
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll(".menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll(".menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  // Rows that are ticked: a range with shift, a page from its head, and how many there are.
  const ticks = () => all("main tbody [name=id]");
  const ticked = () => ticks().filter((box) => box.checked);
  const everything = () => one(".acts [name=all]");
  const counted = () => {
    const said = one("[data-ticked]");
    if (!said) return;
    const [count, of] = [ticked().length, ticks().length];
    said.dataset.was ??= said.textContent;
    const row = count === 1 ? "1 row ticked." : `${count} rows ticked.`;
    said.textContent = everything()?.checked ? "All that match are meant." : count ? row : said.dataset.was;
    const head = one("[data-tick-all]");
    head.checked = count === of;
    head.indeterminate = count > 0 && count < of;
  };
  const ticking = () => {
    const head = one("[data-tick-all]");
    if (!head) return;
    head.hidden = false;
    let last = null;
    head.addEventListener("change", () => {
      for (const box of ticks()) box.checked = head.checked;
    });
    document.addEventListener("click", (event) => {
      if (!event.target.matches?.("main tbody [name=id]")) return;
      const boxes = ticks();
      const [from, to] = [boxes.indexOf(last), boxes.indexOf(event.target)];
      if (event.shiftKey && from >= 0) {
        const range = boxes.slice(Math.min(from, to), Math.max(from, to) + 1);
        for (const box of range) box.checked = event.target.checked;
      }
      last = event.target;
      counted();
    });
    head.form.addEventListener("change", counted);
    head.form.addEventListener("submit", (event) => {
      if (ticked().length || everything()?.checked) return;
      event.preventDefault();
      one("[data-ticked]").textContent = "Nothing is ticked yet: tick rows first.";
    });
    // A browser that comes back keeps the ticks.
    addEventListener("pageshow", counted);
  };

  // Keys. Each has a twin that can be pressed, and all can be switched off (WCAG 2.1.4).
  const rows = () => all("main table.list tbody tr").filter((row) => row.querySelector(".main a"));
  const here = () => document.activeElement?.closest?.("main table.list tbody tr");
  const go = (step) => {
    const list = rows();
    const at = list.indexOf(here());
    const next = list[at < 0 ? (step > 0 ? 0 : list.length - 1) : at + step];
    next?.querySelector(".main a").focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  // With ticked rows the bar acts, with a row in focus its dead letter does, and on a dead letter's
  // own page its button.
  const act = (action) => {
    const button = one(`.acts [name=action][value=${action}]`);
    if (button && (ticked().length || everything()?.checked)) return button.click();
    const row = here();
    const box = row?.querySelector("[name=id]");
    if (action === "assign" && box && button) {
      box.checked = true;
      return button.click();
    }
    const link = row?.querySelector('.main a[href^="/dead-letters/"]');
    // Assigning has no page of its own: it is a form on the dead letter's.
    if (link) return action === "assign" ? link.click() : location.assign(`${link.pathname}/${action}`);
    if (row || one("main tbody [name=id]")) return undefined;
    const place = one(`main a[href$="/${action}"]`) ?? one(`main a[href*="/${action}?"]`);
    if (place) return place.click();
    const form = one(`main form[action$="/${action}"]`);
    for (let box = form?.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    return form?.querySelector("select, textarea, input:not([type=hidden]), button")?.focus();
  };
  const keys = {
    j: ["Next row", () => go(1)],
    k: ["Row before", () => go(-1)],
    o: ["Open the row: its sentence is the link", () => here()?.querySelector(".main a").click()],
    x: ["Tick the row, or take the tick away", () => here()?.querySelector("[name=id]")?.click()],
    r: ["Replay: what is ticked, the row, or this dead letter", () => act("replay")],
    e: ["Resolve the same", () => act("resolve")],
    a: ["Assign the same", () => act("assign")],
    "/": ["Go to the search field", () => (one("main input[type=search]") ?? one(".find input"))?.focus()],
    "?": ["Show these keys", () => help()],
  };
  const off = () => kept("keys") === "off";
  let sheet = null;
  const help = () => {
    if (!sheet) {
      sheet = make("dialog", "", document.body);
      sheet.className = "keys";
      sheet.setAttribute("aria-labelledby", "keys-title");
      make("h2", "Keys", sheet).id = "keys-title";
      make("p", "They do nothing while you type. Links, boxes and buttons do the same.", sheet);
      const list = make("dl", "", sheet);
      for (const [key, [words]] of Object.entries(keys)) {
        const line = make("div", "", list);
        make("kbd", key, make("dt", "", line));
        make("dd", words, line);
      }
      const label = make("label", "", sheet);
      label.className = "tick";
      const box = make("input", "", label);
      box.type = "checkbox";
      box.checked = !off();
      box.addEventListener("change", () => keep("keys", box.checked ? "on" : "off"));
      label.append("Use keys on this device");
      const form = make("form", "", sheet);
      form.method = "dialog";
      make("button", "Close", form).className = "button";
    }
    sheet.showModal();
  };
  const typing = (element) =>
    element.isContentEditable ||
    element.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=submit], [type=button])");
  document.addEventListener("keydown", (event) => {
    const known = Object.hasOwn(keys, event.key) && keys[event.key];
    if (!known || off() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (typing(event.target) || one("dialog[open]")) return;
    event.preventDefault();
    known[1]();
  });

  // News. They are said and never shown unasked: nothing moves under the hand.
  const busy = () => {
    const dirty = (field) =>
      field.matches("select")
        ? [...field.options].some((option) => option.selected !== option.defaultSelected)
        : field.type === "checkbox" || field.type === "radio"
          ? field.checked !== field.defaultChecked
          : field.value !== field.defaultValue;
    const fields = all("main input:not([type=hidden], [data-tick-all]), main textarea, main select");
    return (
      fields.some(dirty) || one("dialog[open], .menu[open]") !== null || !getSelection().isCollapsed
    );
  };
  const listening = () => {
    const main = one("main[data-live]");
    if (!main || !window.EventSource) return;
    const news = make("div", "", document.body);
    news.className = "news";
    news.setAttribute("role", "status");
    const title = document.title;
    const say = (text, button, then) => {
      if (news.firstChild?.textContent === text) return;
      news.replaceChildren();
      if (!text) return;
      make("span", text, news);
      const show = make("button", button, news);
      show.type = "button";
      show.className = "button small";
      show.addEventListener("click", then);
    };
    // The browser keeps the place on the page.
    const reload = () => location.reload();
    const show = () =>
      busy()
        ? say("Showing it drops what you ticked or typed here.", "Show all the same", reload)
        : reload();
    const hear = (event) => {
      const { open, new: fresh, changed } = JSON.parse(event.data);
      const count = one(".rail .count");
      if (count?.firstChild) count.firstChild.data = open;
      document.title = fresh ? `(${fresh} new) ${title}` : changed ? `(changed) ${title}` : title;
      const letters = fresh === "1" ? "1 new dead letter." : `${fresh} new dead letters.`;
      say(fresh ? letters : changed ? "This changed meanwhile." : "", "Show", show);
    };
    let source = null;
    const close = () => {
      source?.close();
      source = null;
    };
    // A browser has few connections to a host: only the page that is seen holds one.
    const listen = () => {
      close();
      if (document.hidden) return;
      const { live, since } = main.dataset;
      source = new EventSource(`/live?${new URLSearchParams({ about: live, since })}`);
      source.addEventListener("news", hear);
      source.addEventListener("ended", () => {
        close();
        say("You are signed out by now.", "Sign in", reload);
      });
    };
    document.addEventListener("visibilitychange", listen);
    addEventListener("pagehide", close);
    addEventListener("pageshow", listen);
  };

  document.addEventListener("DOMContentLoaded", () => {
    ticking();
    listening();
    const shows = one("[data-keys]");
    if (shows) {
      shows.hidden = false;
      shows.addEventListener("click", help);
    }
    const toggle = document.querySelector("[data-theme-switch]");
    if (toggle) {
      const label = toggle.querySelector("span");
      const show = (theme) => {
        label.textContent = words[theme];
      };
      show(stored());
      toggle.hidden = false;
      toggle.addEventListener("click", () => {
        const theme = themes[(themes.indexOf(stored()) + 1) % themes.length];
        keep("theme", theme);
        wear(theme);
        show(theme);
      });
    }
    // A reason given before, taken again at a press.
    for (const list of document.querySelectorAll("[data-fill]")) {
      for (const item of list.children) {
        const take = document.createElement("button");
        take.type = "button";
        take.className = "quiet";
        take.textContent = item.textContent;
        take.addEventListener("click", () => {
          const field = document.getElementById(list.dataset.fill);
          field.value = take.textContent;
          field.focus();
        });
        item.replaceChildren(take);
      }
    }
    const print = document.querySelector("[data-print]");
    if (print) {
      print.hidden = false;
      print.addEventListener("click", () => {
        for (const box of document.querySelectorAll("main details")) box.open = true;
        window.print();
      });
    }
  });
})();
