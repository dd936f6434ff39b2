// Passkeys, where the browser has them. The pages that load this have other ways beside them.
"use strict";
(() => {
  const able = window.PublicKeyCredential?.parseRequestOptionsFromJSON && navigator.credentials;
  if (!able) return;
  for (const offer of document.querySelectorAll("[data-passkey-offer]")) offer.hidden = false;
  for (const excuse of document.querySelectorAll("[data-passkey-missing]")) excuse.hidden = true;
  const form = document.querySelector("form[data-passkey]");
  if (!form) return;
  const says = document.querySelector("[data-passkey-says]");
  const ask = async () => {
    const { passkey, options } = form.dataset;
    const read = passkey === "create" ? "parseCreationOptionsFromJSON" : "parseRequestOptionsFromJSON";
    try {
      const publicKey = PublicKeyCredential[read](JSON.parse(options));
      const shown = await navigator.credentials[passkey]({ publicKey });
      form.querySelector("[data-passkey-answer]").value = JSON.stringify(shown);
    } catch (error) {
      says.textContent =
        error.name === "InvalidStateError"
          ? "This device holds a passkey of yours for this desk already. Use it, or choose another device."
          : "No passkey was shown. Ask for it again, or go back and choose another way.";
      return;
    }
    form.submit();
  };
  // Nothing is sent before the browser has answered.
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopPropagation();
    ask();
  });
  ask();
})();
