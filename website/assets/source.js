// Pages of source have the colours that the reader has chosen on the others.
(() => {
  const site = new URL(document.currentScript.dataset.site, location.href).pathname;
  let chosen = null;
  try {
    chosen = JSON.parse(localStorage.getItem(`${site}.__palette`));
  } catch {
    // nothing is kept where storage is not allowed
  }
  const scheme = chosen?.color?.media === "(prefers-color-scheme)" ? null : chosen?.color?.scheme;
  if (scheme) document.documentElement.dataset.scheme = scheme;
})();
