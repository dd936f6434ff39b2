// The desk is complete without this file. It adds a theme switch, a guard against impatient
// fingers, and printing with everything open.
"use strict";
(() => {
  const root = document.documentElement;
  const themes = ["system", "light", "dark"];
  const words = { system: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
  const stored = () => {
    try {
      const theme = localStorage.getItem("theme");
      return themes.includes(theme) ? theme : "system";
    } catch {
      return "system";
    }
  };
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

  document.addEventListener("DOMContentLoaded", () => {
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
        try {
          localStorage.setItem("theme", theme);
        } catch {
          // It then lasts as long as the page.
        }
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
